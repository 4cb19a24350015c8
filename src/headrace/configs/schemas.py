"""Configs and capabilities as the API shows them."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from headrace.configs.model import Config, ConfigScope
from headrace.configs.registry import ConfigKey

_AT = "2026-03-01T08:00:00Z"


class ConfigIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    value: Annotated[JsonValue, Field(description="As the key's schema has it.", examples=[{"beta": True}])]
    is_active: Annotated[bool, Field(description="False keeps it without letting it hold.")] = True


class ConfigOut(BaseModel):
    """A value that is set."""

    key: str = Field(examples=["features"])
    scope: ConfigScope
    scope_id: str = Field(description="Whose: empty for GLOBAL.", examples=[""])
    value: Any = Field(examples=[{"beta": True}])
    version: int = Field(description="The `ETag`: counts the changes, from 1.", examples=[1])
    is_active: bool
    created_at: datetime = Field(examples=[_AT])
    updated_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, config: Config) -> Self:
        return cls(
            key=config.config_key,
            scope=config.config_scope,
            scope_id=config.scope_id,
            value=config.config_value,
            version=config.version,
            is_active=config.is_active,
            created_at=config.created_at,
            updated_at=config.updated_at,
        )


class ConfigKeyOut(BaseModel):
    """What can be set."""

    key: str = Field(examples=["features"])
    description: str
    public: bool = Field(description="Whether `GET /v1/capabilities` shows it to clients.")
    default: Any = Field(description="What holds where nothing is set.", examples=[{}])
    value_schema: dict[str, Any] = Field(description="JSON Schema of the value.")

    @classmethod
    def of(cls, key: ConfigKey[Any]) -> Self:
        return cls(
            key=key.name,
            description=key.description,
            public=key.public,
            default=key.as_json(key.default),
            value_schema=dict(key.schema()),
        )


class Limits(BaseModel):
    """What one request, one task or one user may have at the most."""

    body_bytes: int = Field(description="A request that uploads no file.", examples=[1048576])
    task_payload_bytes: int = Field(examples=[262144])
    task_result_bytes: int = Field(examples=[262144])
    page_items: int = Field(description="Items of one page of a list.", examples=[100])
    requests_per_minute: int = Field(description="On average, for one user or address.", examples=[600])
    requests_at_once: int = Field(examples=[120])
    idempotency_seconds: int = Field(description="How long a repeated request is known.", examples=[86400])


class AccountsOffer(BaseModel):
    """How people get in and out."""

    registration: Literal["open", "closed"]
    logins: list[Literal["password", "wechat"]] = Field(examples=[["password"]])
    password_min_length: int = Field(examples=[10])
    deletion_grace_seconds: int = Field(
        description="How long a deleted account can be kept after all.", examples=[604800]
    )


class Offer(BaseModel):
    """What the settings say this installation offers; the wiring makes it once."""

    version: str = Field(examples=["0.1.0"])
    accounts: AccountsOffer
    limits: Limits


class CapabilitiesOut(Offer):
    """What this installation offers whoever asks."""

    configs: dict[str, Any] = Field(
        description="The public config keys with the values that hold for you.", examples=[{"features": {"beta": True}}]
    )

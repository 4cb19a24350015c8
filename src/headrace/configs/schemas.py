"""Request and response bodies of configs and capabilities."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from headrace.configs.model import Config, ConfigScope
from headrace.configs.registry import ConfigKey

_AT = "2026-03-01T08:00:00Z"


class ConfigIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    value: Annotated[JsonValue, Field(description="A value that matches the key's schema.", examples=[{"beta": True}])]
    is_active: Annotated[bool, Field(description="False stores it without applying it.")] = True


class ConfigOut(BaseModel):
    """A set value."""

    key: str = Field(examples=["features"])
    scope: ConfigScope
    scope_id: str = Field(description="The tenant's or user's id; empty for GLOBAL.", examples=[""])
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
    """A config key."""

    key: str = Field(examples=["features"])
    description: str
    public: bool = Field(description="Whether `GET /v1/capabilities` shows it to clients.")
    default: Any = Field(description="The value if none is set.", examples=[{}])
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
    """Limits of one request, one task or one user."""

    body_bytes: int = Field(description="The largest body of a request without an upload.", examples=[1048576])
    task_payload_bytes: int = Field(examples=[262144])
    task_result_bytes: int = Field(examples=[262144])
    page_items: int = Field(description="The maximum number of items on a page.", examples=[100])
    requests_per_minute: int = Field(description="On average, for one user or address.", examples=[600])
    requests_at_once: int = Field(examples=[120])
    idempotency_seconds: int = Field(description="How long an idempotency key is stored.", examples=[86400])


class AccountsOffer(BaseModel):
    """Registration, login and deletion of accounts."""

    registration: Literal["open", "closed"]
    logins: list[Literal["password", "wechat"]] = Field(examples=[["password"]])
    password_min_length: int = Field(examples=[10])
    mail: bool = Field(description="Whether a forgotten password can be reset by e-mail.", examples=[True])
    deletion_grace_seconds: int = Field(
        description="How long the deletion of an account can be undone.", examples=[604800]
    )


class Offer(BaseModel):
    """Capabilities by the settings; made once by the wiring."""

    version: str = Field(examples=["0.1.0"])
    accounts: AccountsOffer
    limits: Limits


class CapabilitiesOut(Offer):
    """The capabilities of this installation for the caller."""

    configs: dict[str, Any] = Field(
        description="The public config keys with your effective values.", examples=[{"features": {"beta": True}}]
    )

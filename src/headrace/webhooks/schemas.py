"""Request and response bodies of endpoints and deliveries."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from headrace.edge.instants import Instant
from headrace.edge.text import Line, Text
from headrace.edge.vocabulary import AsShown
from headrace.webhooks.http.targets import MAX_URL_LENGTH
from headrace.webhooks.model import (
    MAX_ADDRESSES,
    MAX_NAME_LENGTH,
    MAX_PATTERNS,
    MAX_TASK_TYPES,
    Delivery,
    DeliveryStatus,
    Endpoint,
    EndpointSpec,
    EndpointStatus,
    Statistics,
    StatusReason,
)
from headrace.webhooks.secrets import Secret

_AT = "2026-06-01T12:00:00Z"
ENDPOINT_ID = "whe_01h455vb4pex5vsknk084sn02q"
DELIVERY_ID = "whd_01h455vb4pex5vsknk084sn02q"
EVENT_ID = "evt_01h455vb4pex5vsknk084sn02q"

Name = Annotated[Line, Field(min_length=1, max_length=MAX_NAME_LENGTH, examples=["billing"])]
Url = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=MAX_URL_LENGTH,
        description="`https://…` on a public address. Redirects are not followed.",
        examples=["https://example.com/hooks"],
    ),
]
Events = Annotated[
    list[Annotated[Text, Field(max_length=128)]],
    Field(
        min_length=1,
        max_length=MAX_PATTERNS,
        description="Event types: `task.succeeded`, all with a prefix (`task.*`), or `*`.",
        examples=[["task.*"]],
    ),
]
TaskTypes = Annotated[
    list[Annotated[Text, Field(min_length=1, max_length=255)]] | None,
    Field(
        min_length=1,
        max_length=MAX_TASK_TYPES,
        description="Only events of tasks of these types; null for every type.",
    ),
]
AllowIps = Annotated[
    list[Annotated[Text, Field(max_length=64)]] | None,
    Field(
        min_length=1,
        max_length=MAX_ADDRESSES,
        description="Addresses and networks to which the URL may resolve; null for any public one.",
        examples=[["198.51.100.0/24"]],
    ),
]
TimeoutMs = Annotated[
    int, Field(ge=1000, le=30_000, description="Time for connecting, sending, and the head of the answer.")
]
MaxRetries = Annotated[int, Field(ge=0, le=10, description="Attempts after the first one.")]
SecretText = Annotated[
    Text | None,
    Field(
        max_length=120,
        description="`whsec_` and 24 to 64 bytes in base64; generated if left out.",
    ),
]
Ordered = Annotated[
    bool,
    Field(description="Send events of one task (or other aggregate) one after the other, in their order."),
]
EveryUser = Annotated[bool, Field(description="Events of all users, not only yours. For administrators.")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EndpointIn(_Body):
    name: Name
    url: Url
    subscribed_events: Events
    task_types: TaskTypes = None
    timeout_ms: TimeoutMs = 5000
    max_retries: MaxRetries = 6
    allow_ips: AllowIps = None
    ordered: Ordered = False
    every_user: EveryUser = False
    secret: SecretText = None

    def spec(self) -> EndpointSpec:
        return EndpointSpec(
            name=self.name,
            url=self.url,
            subscribed_events=tuple(self.subscribed_events),
            task_types=_tuple(self.task_types),
            timeout_ms=self.timeout_ms,
            max_retries=self.max_retries,
            allow_ips=_tuple(self.allow_ips),
            ordered=self.ordered,
            every_user=self.every_user,
        )


class EndpointChangeIn(_Body):
    """Omitted fields stay unchanged; null removes a filter."""

    name: Name = ""
    url: Url = ""
    subscribed_events: Events = Field(default_factory=list)
    task_types: TaskTypes = None
    timeout_ms: TimeoutMs = 5000
    max_retries: MaxRetries = 6
    allow_ips: AllowIps = None
    ordered: Ordered = False
    every_user: EveryUser = False

    def changes(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


class RotateIn(_Body):
    secret: SecretText = None


class ResendIn(_Body):
    since: Instant = Field(description="Deliveries that failed at or after this time.", examples=[_AT])
    until: Instant | None = Field(default=None, description="Deliveries that failed before this time; now by default.")


class EndpointOut(BaseModel):
    """A webhook endpoint."""

    id: str = Field(examples=[ENDPOINT_ID])
    user_id: str = Field(examples=["u_01h455vb4pex5vsknk084sn02q"])
    name: str
    url: str
    status: EndpointStatus = Field(description="`PAUSED`: events are queued. `DISABLED`: events are skipped.")
    status_reason: StatusReason | None = Field(
        description="Why it is not active: `by_hand`, `failing` (for days), or `gone` (it answered 410)."
    )
    secret_hint: str | None = Field(description="The last characters of the secret.", examples=["…4GhA"])
    secret_rotated_at: datetime | None
    subscribed_events: list[str]
    task_types: list[str] | None
    timeout_ms: int
    max_retries: int
    allow_ips: list[str] | None
    ordered: bool
    every_user: bool
    failing_since: datetime | None = Field(description="The first of the consecutive failures; null after a success.")
    version: int
    created_at: datetime = Field(examples=[_AT])
    updated_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, endpoint: Endpoint) -> Self:
        return cls(**_shown(endpoint))


class EndpointMadeOut(EndpointOut):
    """An endpoint with its new secret."""

    secret: str = Field(
        description="Shown only once. Any Standard Webhooks library checks signatures with it.",
        examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    )

    @classmethod
    def made(cls, endpoint: Endpoint, secret: Secret) -> Self:
        return cls(**_shown(endpoint), secret=secret.text)


class DeliveryItemOut(BaseModel):
    """One attempt to deliver one event to one endpoint."""

    id: str = Field(examples=[DELIVERY_ID])
    endpoint_id: str = Field(examples=[ENDPOINT_ID])
    event_id: str = Field(description="`webhook-id` of the request.", examples=[EVENT_ID])
    event_type: str = Field(examples=["task.succeeded"])
    attempt: int = Field(description="Counted from 1 for this event at this endpoint.")
    status: AsShown[DeliveryStatus] = Field(
        description="`PENDING`: to be sent, or being sent. `RETRYING`: failed, and another attempt is due. `FAILED`: "
        "not sent again, because the endpoint is gone. `DEAD`: failed and not repeated: another attempt has begun, or "
        "this was the last."
    )
    error: str | None = Field(description="Why there was no answer, or another explanation.")
    response_status: int | None
    duration_ms: int | None
    next_retry_at: datetime | None
    delivered_at: datetime | None
    created_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, delivery: Delivery) -> Self:
        return cls(id=delivery.delivery_id, **{name: getattr(delivery, name) for name in cls._names()})

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in cls.model_fields if name != "id"]


class DeliveryOut(DeliveryItemOut):
    """One attempt, with its request and response."""

    request_headers: dict[str, str] | None
    request_body: Any
    response_body: str | None = Field(description="The first 4 KB.")


class ResentOut(BaseModel):
    resent: int = Field(description="Deliveries that were queued.")
    more: bool = Field(description="There are more: send the same request again.")


class EndpointStatisticsOut(BaseModel):
    """Attempts, latency and health of an endpoint."""

    since: datetime
    attempts: int
    successes: int
    failures: int
    waiting: int = Field(description="Deliveries that have not ended.")
    success_rate: float | None = Field(description="Successes among attempts; null without attempts.")
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    latency_p99_ms: float | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    last_error: str | None
    consecutive_failures: int
    failing_since: datetime | None
    blocked_until: datetime | None = Field(
        description="Nothing is sent before this time: the endpoint failed too often in a row, or asked for a pause."
    )

    @classmethod
    def of(cls, found: Statistics) -> Self:
        return cls(**{name: getattr(found, name) for name in cls.model_fields})


def _tuple(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _shown(endpoint: Endpoint) -> dict[str, Any]:
    return {name: getattr(endpoint, name) for name in EndpointOut.model_fields}

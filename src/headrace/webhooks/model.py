"""Types of endpoints and deliveries."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import ip_network
from typing import Any, NewType

from headrace import ids
from headrace.outbox.catalogue import EVENT_TYPES
from headrace.outbox.consumers import is_interested
from headrace.webhooks.errors import EndpointInvalid
from headrace.webhooks.http.addresses import Network

EndpointId = NewType("EndpointId", str)
DeliveryId = NewType("DeliveryId", str)

CONSUMER = "webhooks"
TEST_EVENT = "webhook.test"
EVERYTHING = "*"

MAX_NAME_LENGTH = 64
MAX_PATTERNS = 50
MAX_TASK_TYPES = 50
MAX_ADDRESSES = 50
_EVENT_NAMES = [known.name for known in EVENT_TYPES]
_PATTERN = re.compile(r"([a-z][a-z0-9_]*\.)*([a-z][a-z0-9_]*|\*)")


class EndpointStatus(StrEnum):
    """PAUSED: events are queued. DISABLED: events are skipped."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    DISABLED = "DISABLED"


class StatusReason(StrEnum):
    BY_HAND = "by_hand"
    FAILING = "failing"
    GONE = "gone"


class DeliveryStatus(StrEnum):
    """State of one attempt: PENDING → SUCCESS | RETRYING | FAILED | DEAD."""

    PENDING = "PENDING"
    SUCCESS = "SUCCESS"
    RETRYING = "RETRYING"  # it failed; another attempt is due
    FAILED = "FAILED"  # it is not sent: the endpoint is gone
    DEAD = "DEAD"  # it failed, and a later attempt has begun, none is left, or it waited too long


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """The properties of an endpoint that its owner chooses."""

    name: str
    url: str
    subscribed_events: tuple[str, ...]
    task_types: tuple[str, ...] | None = None
    timeout_ms: int = 5000
    max_retries: int = 6
    allow_ips: tuple[str, ...] | None = None
    ordered: bool = False
    every_user: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A row of webhook_endpoints; the repr does not show its secrets."""

    id: EndpointId
    user_id: str
    name: str
    url: str
    status: EndpointStatus
    status_reason: StatusReason | None
    secret_ciphertext: str = field(repr=False)
    secret_previous_ciphertext: str | None = field(repr=False)
    secret_hint: str | None
    secret_rotated_at: datetime | None
    subscribed_events: tuple[str, ...]
    task_types: tuple[str, ...] | None
    timeout_ms: int
    max_retries: int
    allow_ips: tuple[str, ...] | None
    ordered: bool
    every_user: bool
    failing_since: datetime | None
    version: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None

    @property
    def spec(self) -> EndpointSpec:
        return EndpointSpec(
            self.name,
            self.url,
            self.subscribed_events,
            self.task_types,
            self.timeout_ms,
            self.max_retries,
            self.allow_ips,
            self.ordered,
            self.every_user,
        )


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to deliver one event to one endpoint."""

    id: int
    delivery_id: DeliveryId
    endpoint_id: EndpointId
    event_id: str
    event_type: str
    attempt: int
    status: DeliveryStatus
    error: str | None
    response_status: int | None
    duration_ms: int | None
    next_retry_at: datetime | None
    delivered_at: datetime | None
    created_at: datetime
    request_headers: Mapping[str, str] | None = None
    request_body: Any = None
    response_body: str | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Attempts and latencies of an endpoint since a time."""

    since: datetime
    attempts: int
    successes: int
    failures: int
    waiting: int
    success_rate: float | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    latency_p99_ms: float | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    last_error: str | None
    consecutive_failures: int
    failing_since: datetime | None
    blocked_until: datetime | None


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """Limits for all endpoints of a deployment."""

    most: int = 50
    secret_overlap: timedelta = timedelta(hours=24)


def new_endpoint_id() -> EndpointId:
    return EndpointId(ids.new("whe"))


def check_patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    """Deduplicate patterns of event types; raises ``EndpointInvalid`` for an unknown one."""
    unique = tuple(dict.fromkeys(patterns))
    if not 1 <= len(unique) <= MAX_PATTERNS:
        raise EndpointInvalid(f"Name 1 to {MAX_PATTERNS} types of events, or * for all.", field="subscribed_events")
    for pattern in unique:
        if not _PATTERN.fullmatch(pattern) or len(pattern) > 128:
            raise EndpointInvalid(
                f"{pattern!r} is not a type of events: write task.succeeded, task.* or *.", field="subscribed_events"
            )
        if not any(is_interested([pattern], name) for name in _EVENT_NAMES):
            close = difflib.get_close_matches(pattern, _EVENT_NAMES, n=1)
            hint = f"did you mean {close[0]}?" if close else "GET /v1/event-types lists them."
            raise EndpointInvalid(f"There is no event {pattern}: {hint}", field="subscribed_events")
    return unique


def check_networks(texts: Sequence[str] | None) -> tuple[str, ...] | None:
    """Normalize addresses and networks; raises ``EndpointInvalid``."""
    if texts is None:
        return None
    if not 1 <= len(texts) <= MAX_ADDRESSES:
        raise EndpointInvalid(f"Name 1 to {MAX_ADDRESSES} addresses, or none at all.", field="allow_ips")
    return tuple(dict.fromkeys(str(_network(text)) for text in texts))


def networks_of(texts: Sequence[str] | None) -> tuple[Network, ...] | None:
    return None if texts is None else tuple(ip_network(text) for text in texts)


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError:
        raise EndpointInvalid(
            f"{text!r} is neither an address nor a network (192.0.2.7, 192.0.2.0/24, 2001:db8::/32).", field="allow_ips"
        ) from None

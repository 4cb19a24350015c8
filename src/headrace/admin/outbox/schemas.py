"""Events as the API shows them."""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from headrace.outbox.administration import EventStatus, OutboxEvent, Overview
from headrace.outbox.catalogue import EventType
from headrace.outbox.presence import RelayRow

EVENT_ID = "evt_01h455vb4pex5vsknk084sn02q"
_AT = "2026-11-15T10:28:55.577535Z"


class OutboxEventOut(BaseModel):
    """An event in the outbox."""

    id: str = Field(examples=[EVENT_ID], description="Receivers recognise repeated deliveries by it.")
    type: str = Field(examples=["task.succeeded"])
    version: int
    aggregate_type: str = Field(examples=["task"])
    aggregate_id: str
    user_id: str | None = Field(description="Whose event it is.")
    trace_id: str | None
    status: EventStatus = Field(
        description="`PENDING`: waits for delivery. `FAILED`: will be retried. `PUBLISHED`: all consumers have it. "
        "`DEAD`: failed too often; an administrator can revive it."
    )
    tries: int = Field(description="Tries so far without success, the current one included.")
    next_try_at: datetime | None = Field(
        examples=[_AT],
        description="The earliest time of the next try. While a relay delivers the event: when its lease ends.",
    )
    published_at: datetime | None
    created_at: datetime = Field(examples=[_AT])
    data: Any = Field(description="The payload; `GET /v1/event-types` has its schema.")

    @classmethod
    def of(cls, event: OutboxEvent) -> Self:
        return cls(
            id=event.event_id,
            type=event.event_type,
            version=event.event_version,
            aggregate_type=event.aggregate_type,
            aggregate_id=event.aggregate_id,
            user_id=event.user_id,
            trace_id=event.trace_id,
            status=event.status,
            tries=event.retry_count,
            next_try_at=None if event.status in (EventStatus.PUBLISHED, EventStatus.DEAD) else event.next_retry_at,
            published_at=event.published_at,
            created_at=event.created_at,
            data=event.payload_json,
        )


class RelayOut(BaseModel):
    """A relay process that is alive."""

    id: str
    host: str
    pid: int
    asleep: bool = Field(description="Whether it waits for new events.")
    started_at: datetime
    heartbeat_at: datetime

    @classmethod
    def of(cls, relay: RelayRow) -> Self:
        return cls.model_validate(relay, from_attributes=True)


class OutboxOut(BaseModel):
    """How the outbox is doing. Counts end at 100,000."""

    waiting: int = Field(description="New events that no relay has given to the consumers yet.")
    failed: int = Field(description="Events that a consumer could not take: tried again later.")
    dead: int = Field(description="Events that were given up. Alarm above 0.")
    oldest_waiting_seconds: float | None
    written: int = Field(description="Events written since the beginning.")
    broker_waiting: int = Field(description="Messages that the broker has not confirmed.")
    broker_given_up: int = Field(description="Messages that the broker refused too often.")
    relays: list[RelayOut]

    @classmethod
    def of(cls, overview: Overview) -> Self:
        oldest = overview.oldest_waiting
        return cls(
            waiting=overview.waiting,
            failed=overview.failed,
            dead=overview.dead,
            oldest_waiting_seconds=None if oldest is None else max(0.0, oldest.total_seconds()),
            written=overview.written,
            broker_waiting=overview.broker_waiting,
            broker_given_up=overview.broker_given_up,
            relays=[RelayOut.of(relay) for relay in overview.relays],
        )


class ReviveIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: str | None = Field(
        default=None, max_length=128, examples=["task.failed"], description="Only of this type; null: all."
    )


class RevivedOut(BaseModel):
    revived: int


class EventTypeOut(BaseModel):
    """A type of event in one version."""

    name: str = Field(examples=["task.succeeded"])
    version: int
    aggregate: str = Field(description="What events are in order for: one task, one subscription.", examples=["task"])
    description: str
    data_schema: dict[str, Any] = Field(description="JSON Schema of the event's `data`.")

    @classmethod
    def of(cls, known: EventType) -> Self:
        return cls(
            name=known.name,
            version=known.version,
            aggregate=known.aggregate,
            description=known.description,
            data_schema=dict(known.schema),
        )

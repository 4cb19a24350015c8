"""The event type of the outbox."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NewType

from headrace import ids

EventId = NewType("EventId", str)


def _new_id() -> EventId:
    return EventId(ids.new("evt"))


@dataclass(frozen=True, slots=True)
class Event:
    """A change of one object (its aggregate). Receivers drop duplicates by the id."""

    type: str
    aggregate_type: str
    aggregate_id: str
    payload: Mapping[str, Any]
    user_id: str | None = None  # the owner; None: the payload's `user_id`, if it has one
    version: int = 1  # of the payload's schema: an incompatible change is a new version
    trace_id: str | None = None
    request_id: str | None = None  # of the request that caused it, if any
    id: EventId = field(default_factory=_new_id)

    @property
    def headers(self) -> Mapping[str, str] | None:
        """Headers beside the payload, for the logs of both sides."""
        given = {"trace_id": self.trace_id, "request_id": self.request_id}
        return {name: value for name, value in given.items() if value is not None} or None

    def __post_init__(self) -> None:
        if not (self.type and self.aggregate_type and self.aggregate_id):
            raise ValueError("an event needs a type and an aggregate")
        if self.version < 1:
            raise ValueError("versions of events count from 1")

"""What an event is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NewType

from headrace import ids

EventId = NewType("EventId", str)


def _new_id() -> EventId:
    return EventId(ids.new("evt"))


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to one thing (its aggregate). The id is what receivers drop repeats by."""

    type: str
    aggregate_type: str
    aggregate_id: str
    payload: Mapping[str, Any]
    user_id: str | None = None  # whose event it is; None: that of the payload's `user_id`, if it has one
    version: int = 1  # of the payload's form: a change that a receiver could stumble over is a new one
    trace_id: str | None = None
    request_id: str | None = None  # of the request that made it happen, where one did
    id: EventId = field(default_factory=_new_id)

    @property
    def headers(self) -> Mapping[str, str] | None:
        """What goes beside the payload to whoever receives it, for their logs and ours."""
        given = {"trace_id": self.trace_id, "request_id": self.request_id}
        return {name: value for name, value in given.items() if value is not None} or None

    def __post_init__(self) -> None:
        if not (self.type and self.aggregate_type and self.aggregate_id):
            raise ValueError("an event needs a type and an aggregate")
        if self.version < 1:
            raise ValueError("versions of events count from 1")

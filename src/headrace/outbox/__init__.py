"""Transactional outbox: events are written in the transaction of the change, and a relay publishes them later."""

from headrace.outbox.model import Event, EventId
from headrace.outbox.store import append

__all__ = ["Event", "EventId", "append"]

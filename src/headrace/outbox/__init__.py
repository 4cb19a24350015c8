"""Events that become true with the transaction that writes them; a relay tells the world afterwards."""

from headrace.outbox.model import Event, EventId
from headrace.outbox.store import append

__all__ = ["Event", "EventId", "append"]

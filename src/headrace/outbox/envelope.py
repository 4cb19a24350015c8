"""An event as it is told to others."""

from typing import Any

from headrace.outbox.consumers import StoredEvent


def envelope(stored: StoredEvent) -> dict[str, Any]:
    """What every receiver gets, whichever way: ``data`` is what the catalogue's schema of type and version says."""
    event = stored.event
    return {
        "id": event.id,
        "type": event.type,
        "version": event.version,
        "created_at": stored.created_at,
        "aggregate": {"type": event.aggregate_type, "id": event.aggregate_id},
        "user_id": event.user_id,
        "trace_id": event.trace_id,
        "data": event.payload,
    }

"""The published form of an event."""

from typing import Any

from headrace.outbox.consumers import StoredEvent


def envelope(stored: StoredEvent) -> dict[str, Any]:
    """The body for every kind of receiver: ``data`` follows the catalogue's schema of the type and version."""
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

"""SQL of the outbox."""

from collections.abc import Sequence

from headrace.database import Tx
from headrace.outbox.model import Event

# Inserted in order: the rows' ids are the order in which an aggregate's events are published.
APPEND = """
WITH written AS (
INSERT INTO headrace.outbox_events
  (event_id, event_type, event_version, aggregate_type, aggregate_id, user_id, trace_id, payload_json, headers_json,
   status)
SELECT event_id, event_type, event_version, aggregate_type, aggregate_id, user_id, trace_id, payload, headers, 'PENDING'
FROM unnest(
  $1::varchar[], $2::varchar[], $3::integer[], $4::varchar[], $5::varchar[], $6::varchar[], $7::varchar[], $8::jsonb[],
  $9::jsonb[]
) WITH ORDINALITY
  AS given (event_id, event_type, event_version, aggregate_type, aggregate_id, user_id, trace_id, payload, headers,
            position)
ORDER BY position
RETURNING 1
)
SELECT headrace.wake_relays() FROM written LIMIT 1
"""


async def append(tx: Tx, events: Sequence[Event]) -> None:
    """Write events in the transaction of the change: both commit or neither does.

    Write them after the change itself: the lock on the changed row orders the events of one aggregate.
    """
    if not events:
        return
    await tx.execute(
        APPEND,
        [event.id for event in events],
        [event.type for event in events],
        [event.version for event in events],
        [event.aggregate_type for event in events],
        [event.aggregate_id for event in events],
        [event.user_id or event.payload.get("user_id") for event in events],
        [event.trace_id for event in events],
        [dict(event.payload) for event in events],
        [event.headers for event in events],
    )


# Fields of payloads that hold a user's own words: a file's name; a task's title, key, labels and error.
PERSONAL = ("name", "title", "key", "labels", "error_message")
BLANK_OF_USER = """
UPDATE headrace.outbox_events SET payload_json = payload_json - $2::text[] WHERE user_id = $1 AND payload_json ?| $2
"""


async def blank_of_user(tx: Tx, user_id: str) -> int:
    """Remove file names and other user-written fields from a user's events; returns the number of events changed."""
    return await tx.count(BLANK_OF_USER, user_id, PERSONAL)

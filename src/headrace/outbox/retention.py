"""Retention of published events. An event that the broker has not confirmed stays: its message is read from it."""

from headrace.outbox.store import PERSONAL
from headrace.purging import RowRetention

EVENTS = RowRetention(
    "outbox_events",
    """
SELECT id FROM headrace.outbox_events AS event
WHERE created_at < $1 AND status IN ('PUBLISHED', 'DEAD') AND NOT EXISTS (
  SELECT FROM headrace.broker_messages AS message
  WHERE message.event_position = event.id AND message.given_up_at IS NULL
)
ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
""",
    cron="0 3 * * *",
    description="Removes events that were published long ago.",
    name="event_id",
    personal=("payload_json", PERSONAL),
)

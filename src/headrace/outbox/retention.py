"""How events go that were told."""

from headrace.purging import RowRetention

EVENTS = RowRetention(
    "outbox_events",
    """
SELECT id FROM headrace.outbox_events
WHERE created_at < $1 AND status IN ('PUBLISHED', 'DEAD')
ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
""",
    cron="0 3 * * *",
    description="Removes events that were published long ago.",
    name="event_id",
)

"""Retention of notifications, read or unread."""

from headrace.purging import RowRetention

NOTIFICATIONS = RowRetention(
    "notifications",
    """
SELECT id FROM headrace.notifications
WHERE created_at < $1
ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
""",
    cron="30 3 * * *",
    description="Removes old notifications.",
)

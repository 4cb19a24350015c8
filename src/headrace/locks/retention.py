"""Retention of the history of locks; fences stay, so that their numbers keep growing."""

from headrace.locks.store import expire
from headrace.purging import Purge, RowRetention

LOCKS = RowRetention(
    "task_locks",
    """
SELECT id FROM headrace.task_locks
WHERE expires_at < $1 AND state <> 'active' AND coalesce(released_at, expires_at) < $1
ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
""",
    cron="0 3 * * *",
    description="Removes locks that were released or expired long ago; their fences stay.",
    name="lock_key",
)
EXPIRED = Purge("locks", expire)  # marked as expired, not deleted

"""How tasks go that are over, with their logs and steps, and workers that have ended.

Often, and not once a night: what comes in at thousands a second must go at the same pace, or the table grows all day.
"""

from headrace.purging import Purge, RowRetention
from headrace.tasks.store.tasks import PURGE, purge_deleted

TASKS = RowRetention(
    "tasks",
    # By created_at, which has an index; the few that were submitted long ago and are not over are passed over. Runs of
    # schedules keep their row without the task.
    PURGE.format(
        chosen="SELECT id FROM headrace.tasks WHERE created_at < $1 AND finished_at < $1 ORDER BY created_at LIMIT $2"
    ),
    cron="*/10 * * * *",
    description="Removes tasks that ended long ago, with their logs and steps.",
)
WORKERS = RowRetention(
    "workers",
    """
DELETE FROM headrace.workers WHERE number IN (
  SELECT number FROM headrace.workers
  WHERE ended_at < $1
  ORDER BY number LIMIT $2 FOR UPDATE SKIP LOCKED
)
""",
    cron="0 3 * * *",
    description="Removes workers that ended long ago.",
)
# What its owner has deleted is gone within minutes, payload, result and logs.
DELETED = Purge("deleted_tasks", purge_deleted)

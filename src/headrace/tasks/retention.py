"""How tasks go that are over, with their logs and steps, and workers that have ended.

Often, and not once a night: what comes in at thousands a second must go at the same pace, or the table grows all day.
"""

from headrace.purging import Purge, RowRetention
from headrace.tasks.store.tasks import purge_deleted

TASKS = RowRetention(
    "tasks",
    # By created_at, which has an index; the few that were submitted long ago and are not over are passed over. Steps
    # and results go with their task, logs have no foreign key, and runs of schedules keep their row without the task.
    """
SELECT id FROM headrace.tasks
WHERE created_at < $1 AND finished_at < $1
ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
""",
    cron="*/10 * * * *",
    description="Removes tasks that ended long ago, with their logs and steps.",
    lines=("task_logs", "task_id"),
)
WORKERS = RowRetention(
    "workers",
    """
SELECT number, types, heartbeat_at FROM headrace.workers
WHERE ended_at < $1
ORDER BY number LIMIT $2 FOR UPDATE SKIP LOCKED
""",
    cron="0 3 * * *",
    description="Removes workers that ended long ago.",
    key="number",
    # When its types were last seen outlives it: what may be scheduled depends on that (Catalog.check_registered).
    also="""
, seen AS (
  SELECT name, max(heartbeat_at) AS at FROM due, unnest(types) AS name GROUP BY name
), locked AS (
  SELECT type.name, seen.at
  FROM headrace.task_types AS type JOIN seen ON seen.name = type.name AND seen.at > type.seen_at
  ORDER BY type.name FOR NO KEY UPDATE OF type
), noted AS (
  UPDATE headrace.task_types AS type SET seen_at = locked.at FROM locked WHERE type.name = locked.name
)
""",
)
# What its owner has deleted is gone within minutes, payload, result and logs.
DELETED = Purge("deleted_tasks", purge_deleted)

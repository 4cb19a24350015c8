"""How runs of schedules go when they are old, and those of deleted schedules at once."""

from headrace.purging import Purge, RowRetention
from headrace.schedules.service import purge_deleted

EXECUTIONS = RowRetention(
    "task_executions",
    # The last run of a schedule stays, however old: what became of it is what is asked about.
    """
SELECT id FROM headrace.task_executions AS run
WHERE created_at < $1 AND finished_at < $1 AND EXISTS (
  SELECT FROM headrace.task_executions AS later
  WHERE later.task_uid = run.task_uid
    AND (later.scheduled_at, later.execution_uid) > (run.scheduled_at, run.execution_uid)
  OFFSET 0  -- looked up row by row, by the index of lists
)
ORDER BY created_at LIMIT $2 FOR UPDATE OF run SKIP LOCKED
""",
    cron="0 2 * * *",
    description="Removes runs that ended long ago; each schedule keeps its last.",
    name="execution_uid",
)
DELETED = Purge("deleted_schedules", purge_deleted)

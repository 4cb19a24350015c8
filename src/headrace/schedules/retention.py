"""Retention of runs: old ones, and at once those of deleted schedules."""

from headrace.purging import Purge, RowRetention
from headrace.schedules.service import purge_deleted

EXECUTIONS = RowRetention(
    "task_executions",
    # The last run of a schedule stays regardless of age: users ask for its result.
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

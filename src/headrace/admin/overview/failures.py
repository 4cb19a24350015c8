"""Recent failures, grouped by what they say."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headrace.database import Tx
from headrace.tasks.store.tasks import has_status_index

MAX_RECENT = 2_000  # of the newest failures; older ones are in the list of tasks
MAX_GROUPS = 50
_MAX_LINE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures of one type that end with the same line."""

    task_type: str
    error_code: str | None
    error: str
    count: int
    last_at: datetime
    last_task_id: str


# The newest rows along (status, updated_at); a traceback says what happened in its last line.
GROUP_FAILURES = f"""
WITH recent AS MATERIALIZED (
  SELECT id, task_type, error_code, updated_at, right(rtrim(coalesce(error_message, ''), E' \\n'), 2000) AS message
  FROM {{failed}}
  WHERE status = 'FAILED' AND deleted_at IS NULL
  ORDER BY updated_at DESC
  LIMIT {MAX_RECENT}
)
SELECT task_type, error_code, left(substring(message FROM '[^\n]*$'), {_MAX_LINE_LENGTH}) AS error,
       count(*)::integer AS count, max(updated_at) AS last_at,
       (array_agg(id ORDER BY updated_at DESC))[1] AS last_task_id
FROM recent
GROUP BY 1, 2, 3
ORDER BY count DESC, last_at DESC
LIMIT {MAX_GROUPS}
"""

# Where the operator has dropped the index on the status, the order would be a sort of all failures.
_NEWEST_TASKS = f"(SELECT * FROM headrace.tasks ORDER BY created_at DESC LIMIT {10 * MAX_RECENT}) AS task"


async def list_failure_groups(tx: Tx) -> Sequence[FailureGroup]:
    """The groups of the newest failures, the largest first."""
    failed = "headrace.tasks" if await has_status_index(tx) else _NEWEST_TASKS
    return [FailureGroup(**row) for row in await tx.fetch(GROUP_FAILURES.format(failed=failed))]

"""What schedules forget of a user whose account goes: all of them, before the tasks are canceled, or they would fire
new ones. A run that is under way goes on as a task, and is canceled as one."""

from collections.abc import AsyncGenerator

from headrace.database import Database
from headrace.schedules.store import schedules as store

_RUNS = 5000

FIND_ONE = "SELECT uid FROM headrace.scheduled_tasks WHERE user_id = $1 LIMIT 1"
# One that ran every second for months has millions; with the schedule go the few that are left.
DELETE_RUNS = """
DELETE FROM headrace.task_executions WHERE id IN (
  SELECT id FROM headrace.task_executions WHERE task_uid = $1 AND finished_at IS NOT NULL LIMIT $2
)
"""


class ForgetSchedules:
    """The schedules with their history, one at a time."""

    name = "schedules"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        while True:
            async with db.transaction() as tx:
                uid = await tx.fetchval(FIND_ONE, user_id)
                if uid is None:
                    return
                if await tx.count(DELETE_RUNS, uid, _RUNS) == _RUNS:
                    gone = 0
                else:
                    await store.lock_schedule(tx, uid)  # against whoever fires it at this moment
                    await store.delete_schedule(tx, uid)
                    gone = 1
            yield gone

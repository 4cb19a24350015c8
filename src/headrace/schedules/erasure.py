"""What schedules forget of a user whose account goes: all of them, before the tasks are canceled, or they would fire
new ones. A run that is under way goes on as a task, and is canceled as one."""

import asyncio
from collections.abc import AsyncGenerator

from headrace.database import Database
from headrace.schedules.store import schedules as store

_AT_ONCE = 5000  # runs: one that ran every second for months has millions
_PAUSE_S = 0.05

FIND_ONE = "SELECT uid FROM headrace.scheduled_tasks WHERE user_id = $1 LIMIT 1 FOR NO KEY UPDATE"


class ForgetSchedules:
    """The schedules with their history, one at a time."""

    name = "schedules"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        while True:
            async with db.transaction() as tx:
                uid = await tx.fetchval(FIND_ONE, user_id)
                if uid is None:
                    return
                await store.delete_schedule(tx, uid)
                gone = await store.purge_runs(tx, uid, limit=_AT_ONCE)
            if gone == 0:  # a run of it is just moving
                await asyncio.sleep(_PAUSE_S)
            yield gone

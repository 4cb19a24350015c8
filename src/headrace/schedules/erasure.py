"""Erases a deleted user's schedules, before tasks are canceled, because they would submit new ones. A run under way
continues as a task, and is canceled with the tasks."""

import asyncio
from collections.abc import AsyncGenerator

from headrace.database import Database
from headrace.schedules.store import schedules as store

_MAX_RUNS = 5000  # runs in one batch: a schedule of every second has millions
_PAUSE_S = 0.05

FIND_ONE = "SELECT uid FROM headrace.scheduled_tasks WHERE user_id = $1 LIMIT 1 FOR NO KEY UPDATE"


class ForgetSchedules:
    """Deletes the user's schedules with their history, one at a time."""

    name = "schedules"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        while True:
            async with db.transaction() as tx:
                uid = await tx.fetchval(FIND_ONE, user_id)
                if uid is None:
                    return
                await store.delete_schedule(tx, uid)
                gone = await store.purge_runs(tx, uid, limit=_MAX_RUNS)
            if gone == 0:  # its remaining runs are locked
                await asyncio.sleep(_PAUSE_S)
            yield gone

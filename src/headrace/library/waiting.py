"""Waiting for tasks: one statement at a time looks after all that one program waits for."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from headrace.database import Database
from headrace.database_errors import DatabaseUnavailable
from headrace.pacing import Pacer
from headrace.tasks.errors import TaskNotFound
from headrace.tasks.model import Task
from headrace.tasks.store.watching import Gone, find_changed

_FIRST_LOOK = timedelta(milliseconds=5)
_LAST_LOOK = timedelta(seconds=1)
_MIN_PAUSE_S, _MAX_PAUSE_S = 0.005, 0.05  # between two looks


@dataclass(eq=False, slots=True)
class _Waiter:
    task_id: str
    seen: int | None  # the version that was seen; None: only the end counts
    changed: asyncio.Future[Task]


class Waits:
    """All that one program waits for. The looks end with the last of them."""

    def __init__(self) -> None:
        self._pacer: Pacer[_Waiter] = Pacer(first=_FIRST_LOOK, last=_LAST_LOOK)
        self._looking: asyncio.Task[None] | None = None

    async def until_changed(self, db: Database, task_id: str, *, seen: int | None) -> Task:
        """The task as soon as its version is not ``seen`` any more, or, for None, as soon as it is over;
        ``TaskNotFound`` when it is gone."""
        waiter = _Waiter(task_id, seen, asyncio.get_running_loop().create_future())
        with self._pacer.watched(waiter):
            if self._looking is None:
                self._looking = asyncio.create_task(self._look(db), name="wait for tasks")
            return await waiter.changed

    async def close(self) -> None:
        """Stop looking. Those that still wait get ``DatabaseUnavailable``."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        for each in self._pacer:
            _answer(each, DatabaseUnavailable("The connections were closed while this was waited for."))

    async def _look(self, db: Database) -> None:
        try:
            while due := await self._pacer.next_due():
                started = time.monotonic()
                await self._look_once(db, due)
                if not self._pacer:
                    return
                # At most half of the time: a slow database is not asked more often. But a look may have waited for a
                # connection, which says nothing about the database.
                await asyncio.sleep(min(max(_MIN_PAUSE_S, time.monotonic() - started), _MAX_PAUSE_S))
        finally:
            self._looking = None

    async def _look_once(self, db: Database, waiters: Sequence[_Waiter]) -> None:
        changed: Sequence[Task | type[Gone] | Exception | None]
        try:
            changed = await find_changed(db, [(each.task_id, each.seen) for each in waiters])
        except Exception as exc:  # noqa: BLE001 - each waiter raises it: they waited for this look
            changed = [exc] * len(waiters)
        for each, found in zip(waiters, changed, strict=True):
            if found is not None:
                self._pacer.discard(each)
                _answer(each, TaskNotFound() if found is Gone else found)


def _answer(waiter: _Waiter, answer: Task | type[Gone] | Exception) -> None:
    if waiter.changed.done():  # it was canceled
        return
    if isinstance(answer, Exception):
        waiter.changed.set_exception(answer)
    else:
        assert isinstance(answer, Task)
        waiter.changed.set_result(answer)

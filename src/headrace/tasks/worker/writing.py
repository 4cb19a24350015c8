"""Ends on their way to the database: written in batches while handlers run, and bounded in number.

Under load two batches are written at once: the database works on one while the answer to the other is on its way. Only
ends without followers and units: they lock nothing but the rows of their own tasks, so two batches cannot wait for each
other. All others are written one batch at a time.

An unwritten task runs again when the worker is killed. So handlers wait for the writer once it is
that far behind; it is the limit then anyway.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

import asyncpg

from headrace import logs
from headrace.database_errors import RowsLocked
from headrace.errors import HeadraceError, Unavailable
from headrace.tasks.errors import BadResult
from headrace.tasks.model import Ending, ErrorCode, Outcome
from headrace.tasks.worker.blocked import BlockedEnds
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.endings import Writer, failed, finished_by_handlers
from headrace.tasks.worker.figures import Figures
from headrace.tasks.worker.store import Identity

log = logs.get(__name__)

# While more is coming, endings gather for this long: one write for hundreds.
_GATHER_S = 0.002
# A second batch is written at once only if it is large: small ones cost as much as large ones.
_PAIR_BATCH = 1000
_MIN_SECOND_BATCH = 500
# An end that was refused is offered again after so long.
_WRITE_AGAIN_S = 5.0


class WriteBehind:
    """The ends that a worker has not written yet, and the loop that writes them."""

    def __init__(
        self,
        writer: Writer,
        config: WorkerConfig,
        figures: Figures,
        *,
        worker: Callable[[], Identity],
        more_to_come: Callable[[], bool],
        wrote: Callable[[], None],
    ) -> None:
        self._writer = writer
        self._batch = config.batch
        self._most = config.most_unwritten
        self._longest = config.beat_every.total_seconds()
        self._figures = figures
        self._worker = worker
        self._more_to_come = more_to_come
        self._wrote = wrote
        self._waiting: list[Ending] = []
        self._writing: list[Sequence[Ending]] = []  # the oldest first
        self._batch_over = asyncio.Event()
        self._added = asyncio.Event()
        self.blocked = BlockedEnds(writer, worker=worker, wrote=self._wrote_blocked, hand_back=self.add)

    def add(self, ending: Ending) -> None:
        ending.since = time.monotonic()
        self._waiting.append(ending)
        self._added.set()

    def drop(self) -> None:
        """Forget what waits: the lease is lost, and with it the right to write it."""
        self._waiting.clear()
        self.blocked.drop()
        self._wrote()

    async def hand_over(self) -> None:
        """Leave the ends that are blocked with their claims: this worker stops, and the reaper writes them."""
        if endings := self.blocked.drop():
            try:
                left = await self._writer.hand_over(self._worker(), endings)
            except HeadraceError as exc:
                log.warning("worker.ends_not_handed_over", error=exc.code, count=len(endings))
            else:
                log.info("worker.ends_handed_over", count=left)

    @property
    def unwritten(self) -> int:
        """How many wait for the writer; those that are blocked wait for another session."""
        return len(self._waiting) + sum(map(len, self._writing))

    @property
    def full(self) -> bool:
        """Whether no handler may start until something is written: too many ends wait, or one for too long. Blocked
        ends wait for another session, not for the writer: they count only above a limit."""
        if self.blocked.full:
            return True
        unwritten = self.unwritten
        if unwritten == 0 or unwritten >= self._most:
            return unwritten > 0
        oldest = (self._writing[0] if self._writing else self._waiting)[0]
        return time.monotonic() - oldest.since > self._longest

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                await self._added.wait()
                self._added.clear()
                if len(self._waiting) < self._batch and self._more_to_come() and not self.full:
                    await asyncio.sleep(_GATHER_S)
                while self._waiting:
                    if self._writing and not self._may_write_second():
                        self._batch_over.clear()
                        await self._batch_over.wait()
                        continue
                    self._begin_batch(group)

    def _may_write_second(self) -> bool:
        if len(self._writing) > 1 or len(self._waiting) < _MIN_SECOND_BATCH or len(self.blocked):
            return False
        return self._writer.locks_own_rows_only(self._writing[0]) and self._may_pair()

    def _may_pair(self) -> bool:
        return self._writer.locks_own_rows_only(self._waiting[:_PAIR_BATCH])

    def _begin_batch(self, group: asyncio.TaskGroup) -> None:
        pairs = bool(self._writing) or (len(self._waiting) >= _PAIR_BATCH + _MIN_SECOND_BATCH and self._may_pair())
        size = min(self._batch, _PAIR_BATCH) if pairs else self._batch
        batch = self._waiting[:size]
        del self._waiting[:size]
        self._writing.append(batch)
        group.create_task(self._write_batch(batch), name="write a batch of endings")

    async def _write_batch(self, batch: Sequence[Ending]) -> None:
        try:
            await self._write(batch)
        finally:
            self._writing = [each for each in self._writing if each is not batch]
            self._batch_over.set()
            self._added.set()  # what came meanwhile
        self._wrote()

    async def _write(self, batch: Sequence[Ending]) -> None:
        """Write a batch, for as long as it is ours to write: a database that is away for a moment loses nothing."""
        worker = self._worker()
        if waiting := [each for each in batch if self.blocked.concerns(each)] if len(self.blocked) else ():
            self.blocked.add(waiting)
            batch = _without(batch, waiting)
        while batch and worker is self._worker():
            try:
                written = await self._writer.write(worker, batch)
            except RowsLocked as exc:
                if worker is self._worker():
                    batch = await self._set_apart(batch, exc)
                continue
            except Unavailable as exc:
                log.warning("worker.write_failed", error=exc.code, count=len(batch))
                await asyncio.sleep(0.2)
                continue
            except Exception as exc:
                if len(batch) > 1:  # one of them is to blame: the others must not suffer for it
                    for each in batch:
                        await self._write([each])
                    return
                if isinstance(exc, BadResult) and batch[0].outcome is Outcome.SUCCEEDED:
                    # It will be as bad the next time: the task has failed, and says why.
                    batch = [failed(batch[0].claimed, ErrorCode.BAD_RESULT, exc.message, retry=None)]
                    continue
                log.exception("task.unwritable", task_id=batch[0].claimed.task_id)
                await self._put_aside(worker, batch[0])
                return
            self._count(batch, written)
            return

    async def _set_apart(self, batch: Sequence[Ending], exc: RowsLocked) -> Sequence[Ending]:
        """Set aside the ends that wait for an open transaction; gives the others, to be written at once."""
        apart = [each for each in batch if each.claimed.task_id in exc.task_ids or each.claimed.user_id in exc.user_ids]
        if not apart and len(batch) > 1:  # the batch does not show whose they are
            for each in batch:
                await self._write([each])
            return ()
        self.blocked.add(apart or batch)
        return _without(batch, apart) if apart else ()

    def _wrote_blocked(self, batch: Sequence[Ending], written: int) -> None:
        self._count(batch, written)
        self._wrote()

    def _count(self, batch: Sequence[Ending], written: int) -> None:
        finished = min(len(batch), written + finished_by_handlers(batch))
        self._figures.finished += finished
        self._figures.lost += len(batch) - finished
        self._figures.failed += sum(each.outcome is Outcome.FAILED for each in batch)

    async def _put_aside(self, worker: Identity, ending: Ending) -> None:
        """An end that cannot be written (a follower refuses it): the task waits, and is tried again later. Its last
        attempt is not run once more: its end is offered again for as long as the task is ours."""
        try:
            if not ending.claimed.is_last_attempt and await self._writer.put_aside(worker, ending):
                return
        except (HeadraceError, asyncpg.PostgresError) as exc:
            log.warning("task.not_put_aside", task_id=ending.claimed.task_id, error=type(exc).__name__)
        # The connection broke, the database refused, or a cancellation was requested. A task that is still ours is
        # ours to settle.
        asyncio.get_running_loop().call_later(_WRITE_AGAIN_S, self.add, ending)


def _without(batch: Sequence[Ending], others: Sequence[Ending]) -> Sequence[Ending]:
    seqs = {each.claimed.seq for each in others}
    return [each for each in batch if each.claimed.seq not in seqs]

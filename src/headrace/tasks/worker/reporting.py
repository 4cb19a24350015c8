"""What handlers report while they run, written under their lease."""

from datetime import timedelta
from typing import Any

from headrace.connections import transaction_of
from headrace.database import Database, Tx
from headrace.tasks.catalog import known_type
from headrace.tasks.context import StepRecord
from headrace.tasks.errors import ExtensionRefused, LeaseLost, ResultFilesUnavailable
from headrace.tasks.followers import Followers
from headrace.tasks.model import MEDIA_STEPS, Change, Claimed, ErrorCode, Outcome, TaskStatus, Transition
from headrace.tasks.registry import Registry
from headrace.tasks.units import check_count, check_used
from headrace.tasks.worker import store
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.endings import Writer, succeeded, transition
from headrace.tasks.worker.result_files import ResultStore, opened
from headrace.tasks.worker.store import Identity
from headrace.tasks.worker.unit_locks import wait_for_units

_MAX_UNITS = 2**31 - 1
# How long finishing in a handler's own transaction waits for another that has locked the units of the task's owner.
_MAX_WAIT = timedelta(seconds=30)


class LeaseReporter:
    """A ``Reporter`` over the database. Each verb is one transaction that first locks the claim."""

    def __init__(
        self,
        db: Database,
        worker: Identity,
        registry: Registry,
        followers: Followers,
        writer: Writer,
        config: WorkerConfig,
        results: ResultStore | None = None,
    ) -> None:
        self._db = db
        self._worker = worker
        self._registry = registry
        self._followers = followers
        self._writer = writer
        self._config = config
        self._results = results

    async def _hold(self, tx: Tx, claimed: Claimed) -> None:
        if not await store.hold(tx, self._worker, claimed):
            raise LeaseLost

    async def start(self, tasks: list[Claimed]) -> None:
        """Record once that these run, and inform the followers; tasks that are no longer ours are left out."""
        tasks = [each for each in tasks if not each.over]
        # From here on an end cannot know by itself whether the start was reported. It asks, under the lock.
        for each in tasks:
            each.start_sent = True
        async with self._db.transaction() as tx:
            shown = await store.write_start(tx, self._worker, tasks)
            await self._followers.follow(
                tx,
                [
                    (known_type(self._registry.get(each.task_type)), transition(Change.STARTED, each, self._worker))
                    for each in tasks
                    if each.task_id in shown
                ],
            )
        # Not before the commit: it may fail, or succeed without our hearing of it.
        for each in tasks:
            each.start_reported = True

    async def _show(self, claimed: Claimed) -> None:
        if claimed.over:
            raise LeaseLost
        if not claimed.start_reported:
            await self.start([claimed])

    async def progress(self, claimed: Claimed, percent: int, eta_seconds: int | None) -> None:
        await self._show(claimed)
        async with self._db.transaction() as tx:
            await self._hold(tx, claimed)
            await tx.execute(
                store.PROGRESS,
                claimed.task_id,
                percent,
                eta_seconds,
                claimed.attempt,
                self._worker.id,
                claimed.claimed_at,
            )
            await self._follow(tx, claimed, transition(Change.PROGRESSED, claimed, self._worker, progress=percent))

    async def extend(self, claimed: Claimed, seconds: int) -> None:
        left = claimed.extension_seconds or 0
        if claimed.timeout_seconds is None:
            return  # it has all the time in the world
        if not 0 < seconds <= left:
            raise ExtensionRefused(f"This run may be extended by {left} s more, not by {seconds} s.", left=left)
        claimed.extension_seconds = left - seconds
        try:
            await self._show(claimed)  # or its start, which sets the deadline, could come after this and undo it
            async with self._db.transaction() as tx:
                await self._hold(tx, claimed)
                moved = transition(Change.EXTENDED, claimed, self._worker, extended_seconds=seconds)
                await self._follow(tx, claimed, moved)
        except BaseException:
            claimed.extension_seconds += seconds  # it got nothing for it, and may ask again
            raise
        # The worker reads it. Added, here and in the run's row: of two simultaneous requests neither undoes the other.
        claimed.timeout_seconds += seconds

    async def _follow(self, tx: Tx, claimed: Claimed, moved: Transition) -> None:
        if claimed.schedule_uid is not None:
            await self._followers.follow(tx, [(known_type(self._registry.get(claimed.task_type)), moved)])

    async def log(self, claimed: Claimed, message: str) -> None:
        async with self._db.transaction() as tx:
            await self._hold(tx, claimed)
            await store.add_log(tx, claimed, message.replace("\0", ""))

    async def used(self, claimed: Claimed, units: int) -> None:
        check_count(units)
        claimed.used_noted = True
        held = await store.note_used(self._db, self._worker, claimed, min(units, _MAX_UNITS))
        check_used(claimed.task_type, units, held)

    async def begin_step(self, claimed: Claimed, name: str) -> StepRecord:
        await self._show(claimed)
        async with self._db.transaction() as tx:
            await self._hold(tx, claimed)
            done = await tx.fetchrow(store.FIND_DONE_STEP, claimed.task_id, name)
            detail = None if done is None else done["detail_json"]
            status = "RUNNING" if done is None else "SKIPPED"
            await tx.execute(store.BEGIN_STEP, claimed.task_id, name, status, claimed.attempt, detail, claimed.trace_id)
            shown = name if name in MEDIA_STEPS else TaskStatus.RUNNING
            await tx.execute(
                store.STEP_SHOWN, claimed.task_id, name, shown, claimed.attempt, self._worker.id, claimed.claimed_at
            )
            task_type = self._registry.get(claimed.task_type)
            if task_type.step_events:
                moved = transition(Change.STEP_CHANGED, claimed, self._worker)
                await self._followers.follow(tx, [(known_type(task_type), moved)])
        return StepRecord(name, done is not None, detail)

    async def end_step(self, claimed: Claimed, name: str, *, succeeded: bool, detail: Any, millis: int) -> None:
        async with self._db.transaction() as tx:
            await self._hold(tx, claimed)
            status = "SUCCESS" if succeeded else "FAILED"
            await tx.execute(store.END_STEP, claimed.task_id, name, claimed.attempt, status, millis, detail)

    async def save_result(self, claimed: Claimed, path: str, name: str, mime_type: str | None) -> None:
        if self._results is None:
            raise ResultFilesUnavailable
        await self._show(claimed)
        async with self._db.transaction() as tx:
            await self._hold(tx, claimed)
        # What a child process may not read, the worker does not read for it.
        confined = self._registry.get(claimed.task_type).isolation == "process"
        within = self._config.scratch / claimed.task_id if confined else None
        with opened(path, within=within) as file:
            saved = await self._results.save(claimed.task_id, claimed.user_id, file, name=name, mime_type=mime_type)
        former, claimed.saved = claimed.saved, saved
        if former is not None:
            await self._results.discard(former)

    async def finish_in(self, claimed: Claimed, connection: Any, result: Any) -> None:
        tx = await transaction_of(connection)
        task_type = self._registry.get(claimed.task_type)
        ending = succeeded(claimed, task_type.plain_result(result), limit=self._config.result_limit)
        if ending.outcome is not Outcome.SUCCEEDED:
            raise ValueError(ending.error_message or ErrorCode.BAD_RESULT)
        claimed.finishing = True
        try:
            if claimed.used_noted:  # unused units are released: their own transaction waits, as it does in a submit
                await wait_for_units(tx, self._worker, [ending], wait=_MAX_WAIT)
            if await self._writer.write_in(tx, self._worker, [ending]) == 0:
                raise LeaseLost
            claimed.finished_in = True
        except Exception:
            claimed.finishing = False  # its transaction can only be rolled back
            raise

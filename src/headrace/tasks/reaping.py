"""Giving up workers that have fallen silent: their tasks go back or fail. Every process does this in its own loop,
because whatever rescues must not need rescue itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace import logs
from headrace.database import Database, Row
from headrace.database_errors import RowsLocked
from headrace.errors import Unavailable
from headrace.figures import Figure, Kind
from headrace.loops import repeat
from headrace.tasks.followers import Followers
from headrace.tasks.model import Claimed, Ending, ErrorCode, Outcome
from headrace.tasks.registry import Registry
from headrace.tasks.worker.endings import Writer
from headrace.tasks.worker.handing_over import handed_over
from headrace.tasks.worker.store import Identity

log = logs.get(__name__)

_WORKERS_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class Reaped:
    workers: int = 0
    tasks: int = 0

    def __add__(self, other: "Reaped") -> "Reaped":
        return Reaped(self.workers + other.workers, self.tasks + other.tasks)


_IS_SILENT = "ended_at IS NULL AND heartbeat_at + lease < coalesce($1, now())"
# In no order: some may have to wait for a later look, and must not stand in the way of the others.
SILENT = f"SELECT number, id FROM headrace.workers WHERE {_IS_SILENT} ORDER BY random() LIMIT $2"
# Locked against the claims of the worker itself, which hold the row while they take, and against other reapers.
LOCK_SILENT = f"SELECT true FROM headrace.workers WHERE number = $2 AND {_IS_SILENT} FOR UPDATE SKIP LOCKED"
# A row that is locked belongs to a transaction under way, perhaps that of the silent worker, frozen while it finished:
# it may yet be committed. To wait for it would hold up all the others, so it is left to a later look.
_HELD = """
SELECT q.seq, q.task_id, q.attempt, q.claimed_at, q.cancel_requested, q.ended, task.task_type, task.user_id,
       task.retries, task.max_attempts, task.trace_id, task.timeout_seconds, task.schedule_uid
FROM headrace.task_queue AS q
JOIN headrace.tasks AS task ON task.id = q.task_id
WHERE q.worker = $1 {among}
ORDER BY q.seq
FOR UPDATE OF q SKIP LOCKED
"""
HELD_BY = _HELD.format(among="")
HELD_AMONG = _HELD.format(among="AND q.seq = ANY ($2)")
# Only when nothing is left with it. Until then it stays silent: a beat after the end of its lease is refused. The time
# is this statement's: what the worker finished since the transaction began must not seem to come after its end.
GIVE_UP = """
UPDATE headrace.workers AS worker
SET ended_at = coalesce($2, clock_timestamp()), ending = $3, asleep = false
WHERE number = $1 AND NOT EXISTS (SELECT FROM headrace.task_queue AS q WHERE q.worker = worker.number)
RETURNING true
"""


class Reaper:
    def __init__(self, db: Database, registry: Registry, followers: Followers) -> None:
        self._db = db
        self._writer = Writer(db, registry, followers)
        self._total = Reaped()

    async def run_once(self, *, now: datetime | None = None) -> Reaped:
        """Settle what silent workers hold, and give up those that then hold nothing."""
        reaped = Reaped()
        for row in await self._db.fetch_alone(SILENT, now, _WORKERS_AT_ONCE):
            try:
                reaped += await self._reap(Identity(row["number"], row["id"]), now)
            except RowsLocked:  # the lock's owner is unknown; the other workers' tasks do not wait for it
                log.warning("reaper.ends_blocked", worker_id=row["id"])
        self._total += reaped
        return reaped

    def read_figures(self) -> list[Figure]:
        """What this reaper has done, for `/metrics`."""
        return [
            Figure(
                "headrace_workers_reaped_total",
                "Workers that this process gave up because they were silent for longer than their lease. Alarm when it "
                "grows.",
                values={(): self._total.workers},
                kind=Kind.COUNTER,
            ),
            Figure(
                "headrace_tasks_reaped_total",
                "Tasks of dead workers that this process sent back or ended.",
                values={(): self._total.tasks},
                kind=Kind.COUNTER,
            ),
        ]

    async def _reap(self, worker: Identity, now: datetime | None, among: Sequence[int] = ()) -> Reaped:
        """Settle what a silent worker holds, or some of it; a task that a follower refuses is left to a later look, and
        none of the others suffers.

        Each batch is a transaction of its own. Followers lock in one order what a batch needs, but two batches in one
        transaction are in none; and what failed must have let go of its locks before it is tried again. Otherwise two
        reapers wait for each other for ever.
        """
        held: Sequence[Row] = ()
        try:
            async with self._db.transaction() as tx:
                if not await tx.fetchval(LOCK_SILENT, now, worker.number):
                    return Reaped()
                statement = (HELD_AMONG, worker.number, among) if among else (HELD_BY, worker.number)
                held = await tx.fetch(*statement)
                settled = await self._writer.write_in(tx, worker, [_ending(row) for row in held])
                # One that has left ends alone stopped in good order.
                stopped = bool(held) and all(row["ended"] is not None for row in held)
                given_up = await tx.fetchval(GIVE_UP, worker.number, now, "STOPPED" if stopped else "DEAD")
        except RowsLocked as exc:
            return await self._reap_others(worker, now, held, exc)
        except Unavailable:  # no statement was refused for good: the next pass tries all of it again
            raise
        except Exception:
            if not held:
                raise
            if len(held) == 1:
                log.exception("task.unwritable", task_id=held[0]["task_id"])
                return Reaped()
        else:
            if given_up and not stopped:
                log.warning("worker.given_up", worker_id=worker.id)
            return Reaped(1 if given_up and not stopped else 0, settled)
        seqs = [row["seq"] for row in held]
        middle = len(seqs) // 2
        return await self._reap(worker, now, seqs[:middle]) + await self._reap(worker, now, seqs[middle:])

    async def _reap_others(
        self, worker: Identity, now: datetime | None, held: Sequence[Row], locked: RowsLocked
    ) -> Reaped:
        """Settle all but those that wait for another session's open transaction; a later pass settles those."""
        blocked = {row["seq"] for row in held if row["task_id"] in locked.task_ids or row["user_id"] in locked.user_ids}
        if not blocked:
            raise locked
        log.warning("reaper.ends_blocked", worker_id=worker.id, count=len(blocked))
        others = [row["seq"] for row in held if row["seq"] not in blocked]
        return await self._reap(worker, now, others) if others else Reaped()

    async def run(self, every: timedelta) -> None:
        await repeat(self.run_once, every, failed="reaper.failed")


def _ending(row: Row) -> Ending:
    claimed = Claimed(
        seq=row["seq"],
        task_id=row["task_id"],
        attempt=row["attempt"],
        task_type=row["task_type"],
        user_id=row["user_id"],
        payload=None,
        retries=row["retries"],
        max_attempts=row["max_attempts"],
        timeout_seconds=row["timeout_seconds"],
        trace_id=row["trace_id"],
        claimed_at=row["claimed_at"],
        schedule_uid=row["schedule_uid"],
    )  # whether its start was reported is read when its end is written
    if row["ended"] is not None:  # its worker stopped in good order, and could not write this
        return handed_over(claimed, row["ended"])
    if row["cancel_requested"]:
        return Ending(claimed, Outcome.CANCELED)
    # A crash spends an attempt: a task that kills its worker must not do so for ever.
    last = claimed.retries + 1 >= claimed.max_attempts
    return Ending(
        claimed,
        Outcome.FAILED if last else Outcome.INTERRUPTED,
        error_code=ErrorCode.INTERRUPTED,
        error_message="The worker died or was cut off while it ran this task.",
    )

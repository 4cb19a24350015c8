"""Giving up workers that have fallen silent: their tasks go back or fail. Every process does this in its own loop,
because whatever rescues must not need rescue itself."""

import asyncio
import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace import logs
from headrace.database import Database, Row
from headrace.errors import HeadraceError
from headrace.tasks.followers import Followers
from headrace.tasks.model import Claimed, Ending, ErrorCode, Outcome
from headrace.tasks.registry import Registry
from headrace.tasks.worker.endings import Writer
from headrace.tasks.worker.store import Identity

log = logs.get(__name__)

_WORKERS_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class Reaped:
    workers: int
    tasks: int


# Locked against the claims of the worker itself, which hold the row while they take.
GIVE_UP = """
UPDATE headrace.workers
SET ended_at = coalesce($1, now()), ending = 'DEAD', asleep = false
WHERE number IN (
  SELECT number FROM headrace.workers
  WHERE ended_at IS NULL AND heartbeat_at + lease < coalesce($1, now())
  ORDER BY number
  LIMIT $2
  FOR UPDATE SKIP LOCKED
)
RETURNING number, id
"""
HELD_BY = """
SELECT q.seq, q.task_id, q.attempt, q.claimed_at, q.cancel_requested, task.task_type, task.user_id, task.retries,
       task.max_attempts, task.trace_id, task.timeout_seconds
FROM headrace.task_queue AS q
JOIN headrace.tasks AS task ON task.id = q.task_id
WHERE q.worker = ANY ($1)
ORDER BY q.seq
FOR UPDATE OF q
"""


class Reaper:
    def __init__(self, db: Database, registry: Registry, followers: Followers) -> None:
        self._db = db
        self._writer = Writer(db, registry, followers)

    async def run_once(self, *, now: datetime | None = None) -> Reaped:
        """Give up the silent workers and settle what they held, in one transaction: either all of it or nothing."""
        async with self._db.transaction() as tx:
            dead = [Identity(row["number"], row["id"]) for row in await tx.fetch(GIVE_UP, now, _WORKERS_AT_ONCE)]
            settled = 0
            for worker in dead:
                endings = [_ending(row) for row in await tx.fetch(HELD_BY, [worker.number])]
                if endings:
                    settled += await self._writer.write_in(tx, worker, endings, started=set())
        for worker in dead:
            log.warning("worker.given_up", worker_id=worker.id)
        return Reaped(len(dead), settled)

    async def run(self, every: timedelta) -> None:
        while True:
            # Processes that started together must not look together.
            await asyncio.sleep(every.total_seconds() * random.uniform(0.7, 1.3))  # noqa: S311
            try:
                await self.run_once()
            except HeadraceError as exc:
                log.warning("reaper.failed", error=exc.code)


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
    )
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

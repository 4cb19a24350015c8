"""Settling tasks that were submitted by SQL before any worker had declared their type.

Only the type knows their maximum number of attempts, timeout, queue, priority and limit. Until a worker with the type
starts they wait in a lane that no claim reads: an ordinary claim pays nothing.
"""

from collections.abc import Sequence
from datetime import timedelta

from headrace import logs
from headrace.database import Database
from headrace.loops import repeat

log = logs.get(__name__)

_AT_ONCE = 1000

SETTLE = "SELECT headrace.settle_tasks($1, $2) AS settled"
ADOPT = "SELECT headrace.adopt_queue_rows($1) AS adopted"


async def run_once(db: Database, types: Sequence[str]) -> int:
    """Settle what waits for these types, which are declared, in batches; gives how many tasks. Rows of the queue that a
    program of an earlier release wrote are made claimable first."""
    while (await db.fetch_alone(ADOPT, _AT_ONCE))[0]["adopted"] == _AT_ONCE:
        pass
    total = 0
    while True:
        settled: int = (await db.fetch_alone(SETTLE, list(types), _AT_ONCE))[0]["settled"]
        total += settled
        if settled < _AT_ONCE:
            return total


async def run(db: Database, types: Sequence[str], every: timedelta) -> None:
    """Settle again and again: a transaction that was open while the type was declared may have submitted without it."""

    async def settle() -> None:
        if settled := await run_once(db, types):
            log.info("tasks.settled", count=settled)

    await repeat(settle, every, failed="settling.failed")

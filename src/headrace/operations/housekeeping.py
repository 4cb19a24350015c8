"""Throwing away what has served its time: answers to old requests, rate limits, forgotten failures, ended sessions.

In small batches, so that nobody waits behind a long delete. Any number of processes may do it at once.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import timedelta

from headrace import accounts, logs
from headrace.accounts import ThrottleConfig
from headrace.database import Database, Tx
from headrace.edge import idempotency, limits
from headrace.errors import HeadraceError

log = logs.get(__name__)

_BATCH = 1000
_BATCHES = 100  # in one pass; the rest waits for the next


@dataclass(frozen=True, slots=True)
class Kept:
    """How many rows of each kind went."""

    idempotency_keys: int
    rate_limits: int
    login_failures: int
    sessions: int


class Housekeeping:
    def __init__(self, db: Database, throttle: ThrottleConfig) -> None:
        self._db = db
        self._throttle = throttle

    async def run_once(self) -> Kept:
        return Kept(
            idempotency_keys=await self._in_batches(lambda tx: idempotency.reap(tx, _BATCH)),
            rate_limits=await self._in_batches(lambda tx: limits.forget(tx, _BATCH)),
            login_failures=await self._in_batches(
                lambda tx: accounts.forget_failures(tx, self._throttle, limit=_BATCH)
            ),
            sessions=await self._in_batches(lambda tx: accounts.forget_sessions(tx, limit=_BATCH)),
        )

    async def run(self, every: timedelta) -> None:
        while True:
            # Processes that started together must not sweep together.
            await asyncio.sleep(every.total_seconds() * random.uniform(0.5, 1.5))  # noqa: S311
            try:
                kept = await self.run_once()
            except HeadraceError as exc:
                log.warning("housekeeping.failed", error=exc.code)
            else:
                log.info("housekeeping.ran", **asdict(kept))

    async def _in_batches(self, delete: Callable[[Tx], Awaitable[int]]) -> int:
        gone = 0
        for _ in range(_BATCHES):
            async with self._db.transaction() as tx:
                batch = await delete(tx)
            gone += batch
            if batch < _BATCH:
                break
        return gone

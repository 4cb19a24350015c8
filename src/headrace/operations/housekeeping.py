"""Throwing away what has served its time: answers to old requests, rate limits, forgotten failures, ended sessions.

In small batches, so that nobody waits behind a long delete. Any number of processes may do it at once.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from headrace import accounts, locks, schedules
from headrace.accounts import ThrottleConfig
from headrace.database import Database, Tx
from headrace.edge import kept_answers, limits

_BATCH = 1000
_BATCHES = 100  # in one pass; the rest waits for the next


@dataclass(frozen=True, slots=True)
class Swept:
    """How many rows of each kind went, and how many locks were found expired."""

    idempotency_keys: int
    rate_limits: int
    login_failures: int
    sessions: int
    locks: int
    deleted_schedules: int


async def sweep(db: Database, throttle: ThrottleConfig) -> Swept:
    return Swept(
        idempotency_keys=await _in_batches(db, lambda tx: kept_answers.reap(tx, _BATCH)),
        rate_limits=await _in_batches(db, lambda tx: limits.forget(tx, _BATCH)),
        login_failures=await _in_batches(db, lambda tx: accounts.forget_failures(tx, throttle, limit=_BATCH)),
        sessions=await _in_batches(db, lambda tx: accounts.forget_sessions(tx, limit=_BATCH)),
        locks=await _in_batches(db, lambda tx: locks.expire(tx, _BATCH)),
        deleted_schedules=await _in_batches(db, lambda tx: schedules.bury_deleted(tx, _BATCH)),
    )


async def _in_batches(db: Database, delete: Callable[[Tx], Awaitable[int]]) -> int:
    gone = 0
    for _ in range(_BATCHES):
        async with db.transaction() as tx:
            batch = await delete(tx)
        gone += batch
        if batch < _BATCH:
            break
    return gone

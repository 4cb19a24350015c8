"""One transaction of a migration, tried again while a table that it needs is in use."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import asyncpg

# Less than PostgreSQL's deadlock_timeout (1 s). A migration and a request that lock two tables in opposite orders wait
# for each other: after that time PostgreSQL would end one of them, and often the request. Requests that queued up
# behind a try go on before the next one.
LONGEST_WAIT = timedelta(milliseconds=300)
_PAUSE_S = 0.1


def limit_waiting(limit: timedelta) -> str:
    return f"SET lock_timeout = {round(limit.total_seconds() * 1000)}"


async def in_turn(
    connection: "asyncpg.Connection[Any]", work: Callable[[], Awaitable[None]], lock_timeout: timedelta
) -> None:
    """Run ``work`` in a transaction, again until it got its locks; after ``lock_timeout`` raise the last refusal."""
    give_up_at = time.monotonic() + lock_timeout.total_seconds()
    while True:
        await connection.execute(f"SET statement_timeout = 0; {limit_waiting(min(LONGEST_WAIT, lock_timeout))}")
        try:
            async with connection.transaction():
                await work()
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            if time.monotonic() >= give_up_at:
                raise
        else:
            return
        await asyncio.sleep(_PAUSE_S * random.uniform(0.5, 1.5))  # noqa: S311 - no secret

"""The end of a run: wait until nothing waits or runs any more."""

import asyncio
import time
from contextlib import suppress
from datetime import timedelta

from headrace.database import Database, DatabaseConfig
from headrace.errors import HeadraceError, Unavailable
from tests.chaos import reading
from tests.chaos.world import World

DRAIN = 180.0  # seconds
LONGEST_READ = timedelta(minutes=5)  # of one invariant; longer is told of, and the others are read


async def come_to_rest(url: str, world: World) -> list[str]:
    """Stop the schedules and wait until nothing waits or runs any more, and everybody has been told; gives what does
    not come to an end."""
    left: list[str] = []
    async with await connected(url) as db:
        await surely(db, reading.STOP_OURS)
        paid = [number for number, order in world.shop.book.orders.items() if order.state in ("SUCCESS", "REFUND")]
        left += await until_none(db, reading.UNTOLD, paid)
        await surely(db, reading.STOP_ALL)
        left += await until_none(db, reading.RESTLESS)
        left += await until_none(db, reading.UNTOLD, paid)
    return left


async def surely(db: Database, sql: str) -> None:
    while True:
        with suppress(Unavailable):
            await db.fetch_alone(sql)
            return
        await asyncio.sleep(0.2)


async def until_none(db: Database, sql: str, *args: object) -> list[str]:
    """Wait until the query finds nothing; gives what it still finds after ``DRAIN``."""
    began, left = time.monotonic(), "the database does not answer"
    while time.monotonic() < began + DRAIN:
        with suppress(Unavailable):
            rows = await db.fetch_alone(sql, *args)
            if not rows:
                return []
            left = str([dict(row) for row in rows[:5]])
        await asyncio.sleep(0.3)
    return [f"not at rest after {DRAIN:.0f} s: {left}"]


async def connected(url: str, *, patience: timedelta = timedelta(seconds=30)) -> Database:
    while True:
        with suppress(HeadraceError):
            return await Database.connect(DatabaseConfig(url, role="chaos", statement_timeout=patience))
        await asyncio.sleep(0.3)

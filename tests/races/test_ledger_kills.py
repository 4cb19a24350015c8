"""Clients, workers and PostgreSQL are killed and frozen while tasks are created, run, canceled and tried again: the
ledger adds up, each success is charged once, and each failure not at all."""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.audit import Who
from headrace.billing.verifying import verify
from headrace.database import Database, DatabaseConfig
from headrace.errors import Unavailable
from tests.billing import stand
from tests.edge.stand import user
from tests.races.engine_program import Options
from tests.races.engine_stand import Mortal, count_over, crew, harm, mortal_server

LEASE = 1.5
PROGRAM = "tests.races.ledger_program"

# What a task was charged in all, beside what its handler says it used: all, or one less than that.
WRONGLY_CHARGED = """
SELECT task.id, task.status, task.payload, coalesce(entry.charged, 0) AS charged, entry.commits
FROM headrace.tasks AS task
LEFT JOIN (
  SELECT task_id, sum(consume_unit) FILTER (WHERE status = 'COMMITTED') AS charged,
         count(DISTINCT idempotency_key) FILTER (WHERE status = 'COMMITTED') AS commits
  FROM headrace.usage_ledger WHERE hold_id IS NOT NULL GROUP BY task_id
) AS entry ON entry.task_id = task.id
WHERE coalesce(entry.charged, 0) <> CASE WHEN task.status <> 'SUCCEEDED' THEN 0
  ELSE (task.payload ->> 'units')::integer
       - ((task.payload ->> 'units')::integer > 1 AND task.payload ->> 'end' <> 'whole')::integer END
"""
OPEN = "SELECT count(*) FROM headrace.task_queue"
LEFT = "SELECT sum(quota_total - quota_left) FROM headrace.entitlements"
CHARGED = "SELECT sum(consume_unit) FROM headrace.usage_ledger WHERE status = 'COMMITTED' AND hold_id IS NOT NULL"


@pytest.fixture
def mortal() -> Iterator[Mortal]:
    with mortal_server() as server:
        yield server


async def number(db: Database, sql: str) -> int:
    return int((await db.fetch_alone(sql))[0][0] or 0)


async def survive(
    mortal: Mortal,
    folder: Path,
    *,
    seconds: float,
    enough: int,
    units: int,
    postgres_kills: int,
    size: int,
    most: int | None = None,
) -> None:
    async with await Database.connect(DatabaseConfig(mortal.url, role="test")) as db:
        users = [await user(db, f"u{each}") for each in range(5)]
        for user_id in users:
            for _ in range(2):
                await stand.grant_alone(db, user_id, units)
        marks = folder / "marks"
        marks.mkdir()
        workers = Options(
            mortal.url, "worker", lease=LEASE, concurrency=8, work=0.05, marks=str(marks), program=PROGRAM
        )
        clients = replace(workers, types="client", settings={"users": users})
        calm, choice = asyncio.Event(), random.Random()
        async with crew(workers, folder / "workers", size=size + 1) as hands:
            async with crew(clients, folder / "clients", size=size) as askers, asyncio.TaskGroup() as storm:
                storm.create_task(harm(hands, calm, choice=choice, lease=LEASE, most=most))
                storm.create_task(harm(askers, calm, choice=choice, lease=LEASE, most=most))
                for _ in range(postgres_kills):
                    await asyncio.sleep(seconds / (postgres_kills + 1))
                    await asyncio.to_thread(mortal.kill)
                await asyncio.sleep(seconds / (postgres_kills + 1))
                await until(lambda: count_over(db), enough)
                calm.set()
            await until_nothing_is_open(db)
            kills = len(hands.buried) + len(askers.buried)
        await check(db)
        tasks = await number(db, "SELECT count(*) FROM headrace.tasks")
        sys.stdout.write(f"{kills} processes killed, {tasks:,} tasks, {await number(db, CHARGED):,} units charged\n")


async def until(count: Callable[[], Awaitable[int]], enough: int) -> None:
    """Wait for so many, and on a slow machine for some, two minutes at the most."""
    end, found = time.monotonic() + 120, 0
    while found < enough and (found == 0 or time.monotonic() < end):
        with suppress(Unavailable):
            found = await count()
        await asyncio.sleep(0.1)


async def until_nothing_is_open(db: Database) -> None:
    async with asyncio.timeout(300):
        while await number(db, OPEN):
            await asyncio.sleep(0.1)


async def check(db: Database) -> None:
    found = await verify(db, Who.system())
    assert found.is_clean, found.faults
    assert [dict(row) for row in await db.fetch_alone(f"{WRONGLY_CHARGED} LIMIT 5")] == []
    # Nothing is open: what is gone from the quotas was charged, to the unit.
    assert await number(db, LEFT) == await number(db, CHARGED)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_every_success_is_charged_once_though_everybody_is_killed(mortal: Mortal, tmp_path: Path) -> None:
    # W-07, W-08, W-10
    await survive(mortal, tmp_path, seconds=2, enough=20, units=2000, postgres_kills=0, size=1, most=3)


@pytest.mark.slow
@pytest.mark.timeout(1500)
async def test_a_minute_of_kills_leaves_a_ledger_that_adds_up(mortal: Mortal, tmp_path: Path) -> None:
    # W-07, W-08, W-10
    await survive(mortal, tmp_path, seconds=45, enough=2000, units=50_000, postgres_kills=2, size=2)

"""Workers and PostgreSQL are killed and frozen at random; afterwards every task is done, once, with nobody's help."""

import asyncio
import random
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.database import Database, DatabaseConfig
from headrace.errors import Unavailable
from tests.races.engine_program import Options
from tests.races.engine_stand import Crew, Mortal, count_over, crew, harm, mortal_server, submit, until_over

pytestmark = pytest.mark.long

LEASE = 1.5


@pytest.fixture
def mortal() -> Iterator[Mortal]:
    with mortal_server() as server:
        yield server


async def kill_postgres(mortal: Mortal, *, times: int, seconds: float) -> None:
    """Spread over the time of the storm, never at its very end."""
    for _ in range(times):
        await asyncio.sleep(seconds / (times + 1))
        await asyncio.to_thread(mortal.kill)


async def calm_down(db: Database, calm: asyncio.Event, *, tasks: int, seconds: float, at_most: float) -> None:
    """The storm lasts so long, and on a slow machine until little is left: what is seen then is rescue, not work."""
    began = time.monotonic()
    while time.monotonic() < began + at_most:
        await asyncio.sleep(0.2)
        with suppress(Unavailable):
            if time.monotonic() > began + seconds and await count_over(db) >= 0.95 * tasks:
                break
    calm.set()


async def survive(
    mortal: Mortal,
    folder: Path,
    *,
    tasks: int,
    concurrency: int,
    work: float,
    seconds: float,
    at_most: float,
    postgres_kills: int,
    most: int | None = None,
) -> None:
    """Run the tasks under the storm, and look at the books when it is over."""
    options = Options(mortal.url, "counting", lease=LEASE, concurrency=concurrency, work=work, marks=str(folder))
    calm = asyncio.Event()
    async with await Database.connect(DatabaseConfig(mortal.url, role="test")) as db:
        await submit(db, "count", [{}] * (tasks // 2), batch=500, counters=True)
        async with crew(options, folder / "log", size=4) as team:
            await until_working(db)
            async with asyncio.TaskGroup() as storm:
                storm.create_task(submit(db, "count", [{}] * (tasks - tasks // 2), batch=50, counters=True))
                storm.create_task(kill_postgres(mortal, times=postgres_kills, seconds=seconds))
                storm.create_task(harm(team, calm, choice=random.Random(), lease=LEASE, most=most))
                storm.create_task(calm_down(db, calm, tasks=tasks, seconds=seconds, at_most=at_most))
            took = await until_over(db, tasks, within=300)
            no_worker_fell(team)
        await check_books(db, tasks)
        kills, again = len(team.buried), (await db.fetch_alone(AGAIN))[0][0]
    sys.stdout.write(f"{kills} workers killed, {again} attempts cut off, all done {took:.1f} s after the last fault\n")


async def until_working(db: Database) -> None:
    async with asyncio.timeout(60):
        while not (await db.fetch_alone("SELECT count(*) FROM books.attempts"))[0][0]:
            await asyncio.sleep(0.05)


def no_worker_fell(team: Crew) -> None:
    assert team.fallen == [], f"a worker ended by itself:\n{team.log.read_text()[-5000:]}"


AGAIN = "SELECT count(*) FROM headrace.task_logs WHERE status <> 'SUCCEEDED'"
FINAL = "SELECT status, count(*) FROM headrace.tasks GROUP BY status"
COUNTS = """
SELECT count(*) AS counters, min(finishing) AS least, max(finishing) AS most, min(apart) AS least_apart
FROM books.counters
"""
# Each attempt has one outcome, they are numbered without gaps, and only the last one is the end.
BAD_HISTORIES = """
SELECT task_id, array_agg(attempt || ' ' || status ORDER BY id) AS history
FROM headrace.task_logs
GROUP BY task_id
HAVING array_agg(attempt ORDER BY id) <> array_agg(attempt ORDER BY attempt)
    OR (min(attempt), max(attempt), count(DISTINCT attempt)) <> (1, count(*), count(*))
    OR (array_agg(status ORDER BY id DESC))[1] <> 'SUCCEEDED'
    OR count(*) FILTER (WHERE status = 'SUCCEEDED') <> 1
"""
STARTED_TWICE = "SELECT task_id, attempt FROM books.attempts GROUP BY 1, 2 HAVING count(*) > 1"
# An attempt is alive from its claim until its outcome is written. now() is a transaction's beginning, so an outcome may
# be written a little later than it says; the next claim is then refused, for run_at is that same now().
OVERLAPS = """
SELECT begun.task_id, begun.attempt, begun.claimed_at, ended.created_at
FROM books.attempts AS begun
JOIN headrace.task_logs AS ended ON ended.task_id = begun.task_id AND ended.attempt < begun.attempt
WHERE begun.claimed_at < ended.created_at
"""
# The worker that began the last attempt is the one that ended it.
WRONG_HANDS = """
SELECT task.id, task.worker_id, worker.id
FROM headrace.tasks AS task
LEFT JOIN books.attempts AS begun ON begun.task_id = task.id AND begun.attempt = task.attempt
LEFT JOIN headrace.workers AS worker ON worker.number = begun.worker
WHERE worker.id IS DISTINCT FROM task.worker_id OR begun.claimed_at IS DISTINCT FROM task.started_at
"""
# Nothing that a worker did counts after it was given up.
AFTER_DEATH = """
SELECT task.id FROM headrace.tasks AS task JOIN headrace.workers AS worker ON worker.id = task.worker_id
WHERE worker.ending = 'DEAD' AND task.finished_at > worker.ended_at
"""


async def check_books(db: Database, tasks: int) -> None:
    assert [tuple(row) for row in await db.fetch_alone(FINAL)] == [("SUCCEEDED", tasks)]
    assert (await db.fetch_alone("SELECT count(*) FROM headrace.task_queue"))[0][0] == 0
    counts = (await db.fetch_alone(COUNTS))[0]
    assert (counts["counters"], counts["least"], counts["most"]) == (tasks, 1, 1)
    assert counts["least_apart"] >= 1
    for offence in (BAD_HISTORIES, STARTED_TWICE, OVERLAPS, WRONG_HANDS, AFTER_DEATH):
        assert [dict(row) for row in await db.fetch_alone(f"{offence} LIMIT 5")] == []


@pytest.mark.timeout(600)  # on a machine that is busy with other tests
async def test_every_task_is_done_once_though_workers_and_postgres_are_killed(mortal: Mortal, tmp_path: Path) -> None:
    await survive(
        mortal, tmp_path, tasks=200, concurrency=4, work=0.2, seconds=4, at_most=120, postgres_kills=1, most=6
    )


@pytest.mark.slow
@pytest.mark.timeout(1500)
async def test_a_minute_of_kills_loses_and_doubles_nothing(mortal: Mortal, tmp_path: Path) -> None:
    await survive(mortal, tmp_path, tasks=20_000, concurrency=40, work=0.1, seconds=60, at_most=600, postgres_kills=2)

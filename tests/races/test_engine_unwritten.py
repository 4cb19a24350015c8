"""What a worker has run and not written yet runs again when it is killed: how much that is has a bound."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from headrace.database import Database
from headrace.tasks.context import TaskContext
from headrace.tasks.worker.config import WorkerConfig
from tests.conftest import TestServer
from tests.races.engine_program import Options
from tests.races.engine_stand import count_over, crew, submit, until_over
from tests.tasks.conftest import Bench

pytestmark = pytest.mark.long


@asynccontextmanager
async def no_ends(server: TestServer, url: str) -> AsyncIterator[None]:
    """No end can be written within the block: each writes a line of history, and somebody has locked that."""
    connection = await asyncpg.connect(server.url(urlsplit(url).path[1:]))
    try:
        async with connection.transaction():
            await connection.execute("LOCK TABLE headrace.task_logs IN SHARE MODE")
            yield
    finally:
        await connection.close()


async def until_still(journal: Path, at_least: int) -> int:
    """Wait until so many handlers have run, and then none for a while; gives how many."""
    async with asyncio.timeout(60):
        while (before := journal.stat().st_size if journal.exists() else 0) < at_least:
            await asyncio.sleep(0.05)
        while True:
            await asyncio.sleep(0.5)
            if (now := journal.stat().st_size) == before:
                return now
            before = now


async def test_a_killed_worker_has_run_no_more_than_the_bound_ahead_of_what_it_wrote(
    db: Database, server: TestServer, database_url: str, tmp_path: Path
) -> None:  # D-08
    count, most = 3000, 200
    journal = tmp_path / "journal"
    options = Options(
        database_url, "noops", lease=3, journal=str(journal), marks=str(tmp_path), settings={"most_unwritten": most}
    )
    await submit(db, "noop", [{}] * count, batch=1000)
    async with crew(options, tmp_path / "log", size=0) as team:
        async with no_ends(server, database_url):
            team.start(1)
            ahead = await until_still(journal, most)
            team.kill(team.programs[0])
        assert most <= ahead <= most + options.concurrency
        await until_over(db, count, within=60)
    assert count <= journal.stat().st_size <= count + most + options.concurrency


@pytest.mark.slow
async def test_near_the_end_of_thirty_thousand_a_killed_worker_is_as_close(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    count, kills, concurrency = 30_000, 4, WorkerConfig().concurrency
    journal = tmp_path / "journal"
    options = Options(
        database_url, "noops", lease=3, journal=str(journal), marks=str(tmp_path), concurrency=concurrency
    )
    await submit(db, "noop", [{}] * count, batch=1000)
    bound = WorkerConfig().most_unwritten + concurrency
    async with crew(options, tmp_path / "log", size=1) as team:
        for kill in range(kills):
            async with asyncio.timeout(120):
                while await count_over(db) < count * (kill + 5) / (kills + 5):
                    await asyncio.sleep(0.001)
            written = await count_over(db)
            team.kill(team.programs[0])
            assert journal.stat().st_size - await count_over(db) <= bound * (kill + 1), (kill, written)
        await until_over(db, count, within=120)
    assert journal.stat().st_size <= count + kills * bound


@pytest.mark.slow
async def test_no_handler_starts_while_an_end_has_waited_for_too_long(
    db: Database, server: TestServer, database_url: str, tmp_path: Path
) -> None:
    bench, ran = Bench(db, tmp_path), 0

    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None:
        nonlocal ran
        ran += 1
        await asyncio.sleep(0.02)

    tasks = [await bench.submit("work") for _ in range(600)]
    async with bench.working(concurrency=2, lease=timedelta(seconds=6)) as worker:
        async with no_ends(server, database_url):
            async with asyncio.timeout(30):
                while not worker._ends.full:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)  # what was running ends
            before = ran
            assert before < len(tasks)
            await asyncio.sleep(1)
            assert ran == before
        await bench.over(*tasks, seconds=60)
    assert ran == len(tasks)


async def test_tasks_with_a_single_attempt_are_not_taken_while_none_may_start(
    db: Database, server: TestServer, database_url: str, tmp_path: Path
) -> None:
    """Else a kill would spend the attempt of tasks that never began."""
    bench = Bench(db, tmp_path)

    @bench.registry.task("once", max_attempts=1)
    async def once(context: TaskContext, payload: Any) -> None: ...

    tasks = [await bench.submit("once") for _ in range(30)]
    async with bench.working(concurrency=4, most_unwritten=8) as worker:
        async with no_ends(server, database_url):
            async with asyncio.timeout(30):
                while not worker._ends.full:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            taken = (await db.fetch_alone("SELECT count(*) FROM headrace.task_queue WHERE worker IS NOT NULL"))[0][0]
            assert taken <= 8 + 4
        await bench.over(*tasks)

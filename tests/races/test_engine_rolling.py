"""A change of code under way: what nobody can run yet waits, and what is taken over is neither lost nor run twice."""

import asyncio
from pathlib import Path

import pytest

from headrace import ids
from headrace.access import Role
from headrace.database import Database, DatabaseConfig
from headrace.tasks.why import Code, explain
from tests.races.engine_program import Options
from tests.races.engine_stand import Program, submit, until_over
from tests.tasks.conftest import Bench, bench
from tests.tasks.people import caller_of

pytestmark = pytest.mark.long

__all__ = ["bench"]

ADMIN = caller_of(ids.SYSTEM_USER, role=Role.ADMIN)


async def test_a_type_that_nobody_has_registered_waits(bench: Bench) -> None:
    bench.registry.task("a")(_nothing)
    (unknown,) = await submit(bench.db, "b", [{}], batch=1)
    (known,) = await submit(bench.db, "a", [{}], batch=1)
    async with bench.working():
        await bench.over(known)
        await asyncio.sleep(0.5)
        row = await bench.row(unknown)
        assert (row["status"], row["attempt"], row["retries"]) == ("QUEUED", 0, 0)
        assert await bench.logged(unknown) == []
        async with bench.db.transaction() as tx:
            found = await explain(tx, ADMIN, unknown)
        assert [each.code for each in found.reasons] == [Code.NO_WORKER_FOR_TYPE]
    other = Bench(bench.db, bench.scratch)
    other.registry.task("b")(_nothing)
    async with other.working():
        (row,) = await other.over(unknown)
    assert (row["status"], row["attempt"]) == ("SUCCEEDED", 1)


async def _nothing(context: object, payload: object) -> None: ...


# What a worker with older code took of the new type, what was spent, and what was said to be interrupted.
TAKEN_BY_OLD = """
SELECT task.id FROM headrace.tasks AS task JOIN headrace.workers AS worker ON worker.id = task.worker_id
WHERE task.task_type <> ALL (worker.types)
"""
SPENT = "SELECT id, retries, attempt FROM headrace.tasks WHERE retries > 0 OR attempt > 1"
LOGGED = "SELECT status, count(*) FROM headrace.task_logs GROUP BY status"
ENDED = "SELECT ending, count(*) FROM headrace.workers GROUP BY ending"


async def roll(url: str, folder: Path, *, batches: int, rounds: int) -> None:
    """Two processes with the old code, replaced one by one by the new, and those again, while tasks keep coming.

    Half of the tasks have a single attempt: a stop that loses track of one would cost it that.
    """
    log = folder / "log"
    old, new = (Options(url, types, lease=30, concurrency=3, work=0.03) for types in ("old", "new"))
    programs = [Program(old, log), Program(old, log)]
    async with await Database.connect(DatabaseConfig(url, role="test")) as db:

        async def keep_submitting() -> int:
            for _ in range(batches):
                for name, attempts in (("a", 1), ("b", 1), ("a", 3), ("b", 3)):
                    await submit(db, name, [{}] * 5, batch=5, max_attempts=attempts)
                await asyncio.sleep(0.05)
            return batches * 20

        try:
            await until_entered(db, 2)
            submitting = asyncio.create_task(keep_submitting())
            for number in range(2 * rounds):
                programs.append(Program(new, log))
                await until_entered(db, 3 + number)
                leaving = programs.pop(0)
                assert await asyncio.to_thread(leaving.finish) == 0, log.read_text()[-3000:]
            tasks = await submitting
            await until_over(db, tasks, within=300)
        finally:
            for program in programs:
                program.process.kill()
                program.process.wait(60)
        assert {row["status"]: row["count"] for row in await db.fetch_alone(LOGGED)} == {"SUCCEEDED": tasks}
        assert await db.fetch_alone(TAKEN_BY_OLD) == []
        assert await db.fetch_alone(SPENT) == []
        # Those that left did so in good order; the last two were killed a moment ago.
        assert {row["ending"]: row["count"] for row in await db.fetch_alone(ENDED)} == {"STOPPED": 2 * rounds, None: 2}


async def until_entered(db: Database, count: int) -> None:
    async with asyncio.timeout(60):
        while (await db.fetch_alone("SELECT count(*) FROM headrace.workers"))[0][0] < count:
            await asyncio.sleep(0.02)


@pytest.mark.timeout(600)
async def test_a_rolling_change_of_code_loses_nothing(database_url: str, tmp_path: Path) -> None:
    await roll(database_url, tmp_path, batches=40, rounds=1)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_many_changes_of_code_lose_nothing(database_url: str, tmp_path: Path) -> None:
    await roll(database_url, tmp_path, batches=600, rounds=15)

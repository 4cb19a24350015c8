"""A start whose commit is cut off, or whose answer is lost: its event is told once, all the same."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from headrace.database import Database, DatabaseConfig, Tx
from headrace.database_errors import DatabaseUnavailable
from headrace.tasks.context import TaskContext
from headrace.tasks.events import OutboxFollower
from headrace.tasks.followers import Followers
from tests.conftest import TestServer
from tests.outbox.hearing import want
from tests.tasks.conftest import Bench
from tests.tasks.people import told

LONG = timedelta(seconds=60)
# A commit that makes a start visible waits for whoever holds this lock.
GATE = 4711
SLOW_STARTS = f"""
CREATE FUNCTION headrace.wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN PERFORM pg_advisory_xact_lock({GATE}); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow_start AFTER UPDATE ON headrace.tasks DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.status = 'RUNNING' AND OLD.status = 'QUEUED') EXECUTE FUNCTION headrace.wait_at_commit();
"""
AT_THE_GATE = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted"
BEHIND_IT = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event <> 'advisory'
"""


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Bench:
    return Bench(db, tmp_path)


@asynccontextmanager
async def gate(server: TestServer, url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A superuser who holds up the commits of starts until the end of the block."""
    connection = await asyncpg.connect(server.url(urlsplit(url).path[1:]))
    try:
        await connection.execute(SLOW_STARTS)
        await connection.execute(f"SELECT pg_advisory_lock({GATE})")
        yield connection
    finally:
        await connection.close()


async def until_found(connection: "asyncpg.Connection[Any]", sql: str, *args: object) -> int:
    async with asyncio.timeout(20):
        while (pid := await connection.fetchval(sql, *args)) is None:
            await asyncio.sleep(0.01)
    return int(pid)


@pytest.mark.parametrize("how", ["by the worker", "in the handler's transaction"])
async def test_a_start_that_is_cut_off_at_its_commit_is_told_with_the_end(
    bench: Bench, server: TestServer, database_url: str, how: str
) -> None:
    done = asyncio.Event()

    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None:
        await done.wait()
        if how != "by the worker":
            async with bench.db.transaction() as tx:
                await context.finish_in(tx)

    bench.followers = Followers({"outbox": OutboxFollower()})
    await want(bench.db)
    async with gate(server, database_url) as superuser, bench.working(lease=LONG):
        for _ in range(6):
            done.clear()
            task = await bench.submit("work")
            starting = await until_found(superuser, AT_THE_GATE, GATE)
            done.set()
            await until_found(superuser, BEHIND_IT)  # the end, which waits for the start
            await superuser.execute("SELECT pg_terminate_backend($1)", starting)
            (row,) = await bench.over(task)
            assert row["status"] == "SUCCEEDED"
            assert await told(bench.db, task) == ["created", "started", "succeeded"]


class LosesAnswers(Database):
    """A database that carries out the commits of starts, and is not heard of afterwards."""

    lost = 0

    @asynccontextmanager
    async def transaction(self, **options: Any) -> AsyncIterator[Tx]:
        async with super().transaction(**options) as tx:
            yield tx
        me = asyncio.current_task()
        if me is not None and me.get_name() == "show starts" and self.lost < 3:
            self.lost += 1
            raise DatabaseUnavailable


async def test_a_start_whose_answer_is_lost_is_not_told_again_with_the_end(database_url: str, tmp_path: Path) -> None:
    async with await LosesAnswers.connect(DatabaseConfig(database_url, role="test")) as db:
        bench = Bench(db, tmp_path)
        bench.followers = Followers({"outbox": OutboxFollower()})
        await want(bench.db)

        @bench.registry.task("work")
        async def work(context: TaskContext, payload: Any) -> None:
            before = db.lost
            while db.lost == before:
                await asyncio.sleep(0.01)

        async with bench.working(lease=LONG):
            for _ in range(3):
                task = await bench.submit("work")
                await bench.over(task)
                assert await told(db, task) == ["created", "started", "succeeded"]

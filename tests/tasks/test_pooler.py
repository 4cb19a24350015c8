"""Everything through PgBouncer in transaction mode, as Debian ships it: no session, no LISTEN, nothing prepared."""

import asyncio
import getpass
import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from headrace import ids, migrations
from headrace.access import Role
from headrace.archive.errors import RetiredElsewhere
from headrace.archive.model import ArchiveState
from headrace.archive.sessions import session, try_lock
from headrace.database import Database, DatabaseConfig, connect_alone
from headrace.database_errors import DatabaseRefused
from headrace.migrations.files import in_transaction
from headrace.migrations.runner import MigrationRefused
from headrace.storage import StorageConfig
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Fatal, Snooze
from headrace.tasks.execution import Backoff
from headrace.tasks.reaping import Reaper
from headrace.tasks.service import cancel_task, retry_task
from tests.archive.months import MAKE_MONTH, MONTH, fill_audit, retire
from tests.conftest import MakeDatabase, TestServer
from tests.missing_programs import missing
from tests.races import engine_types
from tests.races.engine_program import Options
from tests.races.engine_stand import crew, submit, until_over
from tests.tasks.conftest import Bench
from tests.tasks.people import caller_of, hire, take, tasks_of

PROGRAM = shutil.which("pgbouncer", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=missing("PgBouncer"))

AT_ONCE = Backoff(first=timedelta(milliseconds=1), jitter=0)
ADMIN = caller_of(ids.SYSTEM_USER, role=Role.ADMIN)
# Fewer connections to the server than clients, so that they change hands; everything else as it comes.
CONFIG = """
[databases]
app = host={host} port={port} user={user} password={password} dbname={database} connect_query='SET ROLE headrace_app'
owner = host={host} port={port} user={user} password={password} dbname={fresh}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
logfile = {folder}/log
"""


def free_port() -> int:
    """One that stays free: a port that the system picks may be picked for somebody's connection a moment later."""
    while True:
        port = random.randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@pytest.fixture
async def pooler(server: TestServer, template: str, make_database: MakeDatabase) -> AsyncIterator[Callable[[str], str]]:
    """The address of a database behind the pooler: ``app`` is migrated, ``owner`` an empty one as its owner."""
    assert PROGRAM is not None
    parts = urlsplit(server.superuser_url)
    folder = Path(tempfile.mkdtemp(prefix="hr-pooler-"))
    folder.chmod(0o777)
    port = free_port()
    config = folder / "pgbouncer.ini"
    config.write_text(
        CONFIG.format(
            host=parts.hostname,
            port=parts.port,
            user=parts.username,
            password=parts.password,
            database=await make_database(template),
            fresh=await make_database(),
            listen=port,
            folder=folder,
        )
    )
    # It refuses to be root.
    account = ["-u", "nobody"] if os.geteuid() == 0 else []
    process = subprocess.Popen([PROGRAM, "-q", *account, str(config)], stdout=subprocess.DEVNULL)
    try:
        await until_answers(port)
        yield lambda database: f"postgresql://{getpass.getuser()}@127.0.0.1:{port}/{database}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        shutil.rmtree(folder)


async def until_answers(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


@pytest.fixture
async def pooled(pooler: Callable[[str], str]) -> AsyncIterator[Database]:
    async with await Database.connect(DatabaseConfig(pooler("app"), role="test", pool_max=12, pooled=True)) as db:
        yield db


@pytest.fixture
def bench(pooled: Database, tmp_path: Path) -> Bench:
    return Bench(pooled, tmp_path)


POLLING: dict[str, Any] = {"listen": False, "poll_every": timedelta(milliseconds=50)}


async def test_tasks_are_submitted_run_retried_snoozed_and_finished(bench: Bench) -> None:
    @bench.registry.task("good")
    async def good(context: TaskContext, payload: Any) -> Any:
        await context.progress(50)
        await context.log("half way")
        async with context.step("only") as step:
            step.detail = {"kept": payload}
        return {"got": payload}

    @bench.registry.task("flaky", max_attempts=3, backoff=AT_ONCE)
    async def flaky(context: TaskContext, payload: Any) -> str:
        if context.attempt < 3:
            raise RuntimeError("not yet")
        return "at last"

    @bench.registry.task("sleepy")
    async def sleepy(context: TaskContext, payload: Any) -> str:
        if context.attempt < 3:
            raise Snooze(timedelta(milliseconds=5))
        return "awake"

    @bench.registry.task("fatal")
    async def fatal(context: TaskContext, payload: Any) -> None:
        raise Fatal("never")

    @bench.registry.task("pay")
    async def pay(context: TaskContext, payload: Any) -> None:
        async with bench.db.transaction() as tx:
            await tx.execute("INSERT INTO headrace.rate_limits (bucket, tat) VALUES ($1, now())", context.task_id)
            await context.finish_in(tx, "paid")

    names = ("good", "flaky", "sleepy", "fatal", "pay")
    tasks = [await bench.submit(name, {"n": 1}, idempotency_key=f"{name}-1") for name in names]
    assert await bench.submit("good", {"n": 1}, idempotency_key="good-1") == tasks[0]
    async with bench.working(**POLLING), bench.working(**POLLING):
        rows = await bench.over(*tasks)
    assert [row["result"] for row in rows] == [{"got": {"n": 1}}, "at last", "awake", None, "paid"]
    assert [row["status"] for row in rows] == ["SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert [row["retries"] for row in rows] == [0, 2, 0, 0, 0]


async def test_many_short_tasks_over_few_connections(bench: Bench) -> None:
    @bench.registry.task("short", max_running=4)
    async def short(context: TaskContext, payload: Any) -> None: ...

    tasks = await submit(bench.db, "short", [{}] * 300, batch=100)
    async with bench.working(**POLLING), bench.working(**POLLING), bench.working(**POLLING):
        await until_over(bench.db, len(tasks), within=60)
    counts = await bench.db.fetch_alone("SELECT status, count(*) FROM headrace.task_logs GROUP BY status")
    assert [tuple(row) for row in counts] == [("SUCCEEDED", 300)]


@pytest.mark.parametrize("kind", ["async", "thread", "process"])
async def test_tasks_are_canceled(bench: Bench, tmp_path: Path, kind: str) -> None:
    bench.registry = engine_types.registry
    told = tmp_path / "told"
    running, waiting = [await bench.submit(kind, {"told": str(told)}) for _ in range(2)]
    async with bench.db.transaction() as tx:
        await cancel_task(tx, tasks_of(bench), ADMIN, waiting)
    async with bench.working(**POLLING, concurrency=1):
        async with asyncio.timeout(60):
            while not told.exists():
                await asyncio.sleep(0.02)
        async with bench.db.transaction() as tx:
            await cancel_task(tx, tasks_of(bench), ADMIN, running)
        rows = await bench.over(running, waiting)
    assert [row["status"] for row in rows] == ["CANCELED", "CANCELED"]
    assert await bench.logged(running) == [(1, "CANCELED")]
    assert await bench.logged(waiting) == [(0, "CANCELED")]


async def test_a_silent_worker_is_reaped_and_a_beating_one_is_not(bench: Bench) -> None:
    @bench.registry.task("work", max_attempts=2)
    async def work(context: TaskContext, payload: Any) -> None:
        await asyncio.sleep(2)

    lost = await bench.submit("work")
    silent = await hire(bench, lease=timedelta(milliseconds=10))
    assert [claim.task_id for claim in await take(bench, silent)] == [lost]
    await asyncio.sleep(0.05)
    assert (await Reaper(bench.db, bench.registry, bench.followers).run_once()).tasks == 1
    async with bench.working(**POLLING, lease=timedelta(seconds=1)):  # the heart beats over its own connection
        (row,) = await bench.over(lost)
    assert (row["status"], row["attempt"]) == ("SUCCEEDED", 2)
    assert await bench.logged(lost) == [(1, "INTERRUPTED"), (2, "SUCCEEDED")]


async def test_a_failed_task_is_run_again_by_hand(bench: Bench) -> None:
    @bench.registry.task("work", max_attempts=1)
    async def work(context: TaskContext, payload: Any) -> None:
        if context.attempt == 1:
            raise RuntimeError("once")

    task = await bench.submit("work")
    async with bench.working(**POLLING):
        await bench.over(task)
        async with bench.db.transaction() as tx:
            await retry_task(tx, tasks_of(bench), ADMIN, task)
        row = await bench.until(task, lambda row: bool(row["status"] == "SUCCEEDED"))
    assert row["attempt"] == 2


async def test_whoever_listens_is_told_to_look(bench: Bench) -> None:
    """Also a worker that was not told to poll only: it finds out within a second."""

    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    async with bench.working(listen=True, poll_every=timedelta(minutes=10)):
        await asyncio.sleep(0.5)
        (row,) = await bench.over(await bench.submit("work"))
    assert row["status"] == "SUCCEEDED"


async def test_a_statement_that_takes_too_long_is_canceled(pooler: Callable[[str], str]) -> None:
    config = DatabaseConfig(pooler("app"), role="slow", statement_timeout=timedelta(seconds=1), pooled=True)
    async with await Database.connect(config) as db:
        with pytest.raises(Exception, match="took too long"):
            await db.fetch_alone("SELECT pg_sleep(30)")
        async with asyncio.timeout(60):
            while (await db.fetch_alone(SLEEPING))[0][0]:
                await asyncio.sleep(0.1)


SLEEPING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND query = 'SELECT pg_sleep(30)' AND state = 'active'
"""


async def test_a_pooler_that_was_not_declared_is_refused_with_the_setting(pooler: Callable[[str], str]) -> None:
    with pytest.raises(DatabaseRefused, match="HEADRACE_DATABASE_POOLED=true"):
        await Database.connect(DatabaseConfig(pooler("app")))
    with pytest.raises(DatabaseRefused, match="HEADRACE_DATABASE_POOLED=true"):
        async with connect_alone(DatabaseConfig(pooler("app"))):
            pass


async def test_migrations_go_up_and_down_and_leave_nothing_on_the_connection(pooler: Callable[[str], str]) -> None:
    config = DatabaseConfig(pooler("owner"), role="migrate", pooled=True)
    wait = timedelta(seconds=5)
    # Those before the first that is in no transaction: such a one is refused here, for a pooler may move it elsewhere.
    everything = list(itertools.takewhile(lambda each: in_transaction(each.up), migrations.available()))
    migrate = partial(migrations.migrate, config, to=everything[-1].number, lock_timeout=wait, report=_silent)
    # Two at once: one of them has nothing left to do.
    done = await asyncio.gather(*(migrate() for _ in range(2)))
    assert sorted(done, key=len) == [[], everything]
    assert await migrations.roll_back(config, to=0, lock_timeout=wait, report=_silent) == everything[::-1]
    assert await migrate() == everything
    with pytest.raises(MigrationRefused):
        await migrations.migrate(config, lock_timeout=wait, report=_silent)
    async with connect_alone(config) as connection:
        for _ in range(8):  # whichever connection of the server it is
            row = await connection.fetchrow(TRACES)
            assert row is not None
            assert (row["role"], row["statement_timeout"], row["lock_timeout"], row["locks"]) == ("none", "0", "0", 0)


TRACES = """
SELECT current_setting('role') AS role, current_setting('statement_timeout') AS statement_timeout,
       current_setting('lock_timeout') AS lock_timeout,
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (
          SELECT oid FROM pg_database WHERE datname = current_database())) AS locks
"""


def _silent(_: str) -> None:
    pass


async def test_months_are_retired_through_it_by_one_process_at_a_time(pooled: Database, tmp_path: Path) -> None:
    async with pooled.transaction() as tx:
        await tx.execute("SET LOCAL ROLE NONE")
        await tx.execute(MAKE_MONTH, "audit_events", MONTH)
    await fill_audit(pooled, 1500)
    place = StorageConfig(f"file://{tmp_path / 'archive'}")
    async with (
        session(pooled.config) as connection,
        try_lock(pooled.config, connection, "headrace.retire.audit_events") as locked,
    ):
        assert locked
        with pytest.raises(RetiredElsewhere):
            await retire(pooled.config, place)
    assert (await retire(pooled.config, place)).archive.state is ArchiveState.DROPPED
    for _ in range(8):  # whichever connection of the server it is
        (row,) = await pooled.fetch_alone(TRACES)
        assert (row["lock_timeout"], row["locks"]) == ("0", 0)


@pytest.mark.long
async def test_workers_are_killed_behind_the_pooler_and_nothing_is_lost(
    pooler: Callable[[str], str], pooled: Database, tmp_path: Path
) -> None:
    options = Options(
        pooler("app"), "old", pooled=True, listen=False, lease=1.5, concurrency=4, work=0.1, marks=str(tmp_path)
    )
    tasks = await submit(pooled, "a", [{}] * 150, batch=50)
    async with crew(options, tmp_path / "log", size=2) as team:
        for _ in range(4):
            async with asyncio.timeout(60):
                while not any(program.has_worked for program in team.programs):
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.3)
            team.kill(next(program for program in team.programs if program.has_worked))
        await until_over(pooled, len(tasks), within=60)
        assert team.fallen == []
    counts = await pooled.fetch_alone("SELECT status, count(*) FROM headrace.tasks GROUP BY status")
    assert [tuple(row) for row in counts] == [("SUCCEEDED", 150)]

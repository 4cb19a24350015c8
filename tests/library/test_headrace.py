"""``Headrace`` in a program: submit on whatever connection it has, wait, and run a worker beside everything else."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import orjson
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row, namedtuple_row
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import headrace
from headrace import ids
from headrace.connections import UnknownConnection
from headrace.database import Database
from headrace.library.program import Headrace, NoRegistry
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import IdempotencyKeyReused, PayloadInvalid, PayloadTooLarge, TaskNotFound, TaskSpecInvalid
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import WorkerConfig

QUICK = WorkerConfig(concurrency=5, poll_every=timedelta(milliseconds=100), lease=timedelta(seconds=5))


class Order(BaseModel):
    pages: int


@pytest.fixture
def registry() -> Registry:
    made = Registry()

    @made.task("report.build", queue="reports", max_attempts=5, limit_key="payload.pages")
    async def build(context: TaskContext, payload: Order) -> dict[str, int]:
        await context.progress(50)
        return {"pages": payload.pages}

    return made


@pytest.fixture
async def hr(database_url: str, registry: Registry) -> AsyncIterator[Headrace]:
    """With types of its own, and others that some other program has declared."""
    async with Headrace(database_url, registry) as opened:
        async with by_asyncpg(database_url) as connection:
            await connection.execute("INSERT INTO headrace.task_types (name) VALUES ('a'), ('b'), ('bulk')")
        yield opened


async def tasks(db: Database) -> list[str]:
    return [row["id"] for row in await db.fetch_alone("SELECT id FROM headrace.tasks ORDER BY queue_seq")]


# -- connections of every kind


def for_libpq(url: str) -> str:
    return url.replace("?role=headrace_app", "?options=-c%20role%3Dheadrace_app")


def for_sqlalchemy(url: str, driver: str) -> str:
    return for_libpq(url).replace("postgresql://", f"postgresql+{driver}://")


class _GiveUp(Exception):
    pass


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def by_asyncpg_pool(url: str) -> AsyncIterator[Any]:
    async def with_json(connection: "asyncpg.Connection[Any]") -> None:
        await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=orjson.dumps, decoder=orjson.loads)

    async with (
        asyncpg.create_pool(url, min_size=1, init=with_json) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        yield connection


@asynccontextmanager
async def by_our_own(url: str) -> AsyncIterator[Any]:
    from headrace.database import DatabaseConfig

    async with await Database.connect(DatabaseConfig(url)) as db, db.transaction() as tx:
        yield tx


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncIterator[Any]:
    with psycopg.connect(for_libpq(url)) as connection:
        yield connection


@asynccontextmanager
async def by_psycopg_async(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(for_libpq(url), row_factory=dict_row) as connection:
        yield connection


@asynccontextmanager
async def by_psycopg_tuples(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(for_libpq(url), row_factory=namedtuple_row) as connection:
        yield connection


@asynccontextmanager
async def by_sqlalchemy(url: str) -> AsyncIterator[Any]:
    engine = sqlalchemy.create_engine(for_sqlalchemy(url, "psycopg"))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@asynccontextmanager
async def by_sqlalchemy_session(url: str) -> AsyncIterator[Any]:
    engine = sqlalchemy.create_engine(for_sqlalchemy(url, "psycopg"))
    try:
        with Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


@asynccontextmanager
async def by_sqlalchemy_async(url: str) -> AsyncIterator[Any]:
    plain = url.partition("?")[0].replace("postgresql://", "postgresql+asyncpg://")
    engine = create_async_engine(plain, connect_args={"server_settings": {"role": "headrace_app"}})
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


@asynccontextmanager
async def by_sqlalchemy_async_session(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(for_sqlalchemy(url, "psycopg"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session
    finally:
        await engine.dispose()


WAYS = [
    by_asyncpg,
    by_asyncpg_pool,
    by_our_own,
    by_psycopg,
    by_psycopg_async,
    by_psycopg_tuples,
    by_sqlalchemy,
    by_sqlalchemy_session,
    by_sqlalchemy_async,
    by_sqlalchemy_async_session,
]
Way = Callable[[str], AbstractAsyncContextManager[Any]]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_task_belongs_to_the_callers_transaction(
    hr: Headrace, database_url: str, db: Database, way: Way
) -> None:
    with pytest.raises(_GiveUp):
        async with way(database_url) as connection:
            await hr.submit("report.build", {"pages": 1}, connection=connection)
            raise _GiveUp
    assert await tasks(db) == []
    async with way(database_url) as connection:
        first = await hr.submit(
            "report.build", {"pages": 3, "name": "100 % ':x' Größe"}, connection=connection, key="k", title="Q3"
        )
        again = await hr.submit(
            "report.build", {"name": "100 % ':x' Größe", "pages": 3}, connection=connection, key="k", title="Q3"
        )
        assert await tasks(db) == []  # not there for others yet
        many = await hr.submit_many([TaskSpec("a"), TaskSpec("b")], connection=connection)
    assert first == again
    assert await tasks(db) == [first, *many]
    task = await hr.get(first)
    assert (task.payload, task.title) == ({"pages": 3, "name": "100 % ':x' Größe"}, "Q3")
    assert (task.queue, task.max_attempts, task.limit_key) == ("reports", 5, "3")  # as the type says


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_refusals_are_the_same_on_every_connection(hr: Headrace, database_url: str, way: Way) -> None:
    await hr.submit("a", {"n": 1}, key="k")
    with pytest.raises(IdempotencyKeyReused, match=r"^The idempotency key 'k' was used for another task\.$"):
        async with way(database_url) as connection:
            await hr.submit("a", {"n": 2}, key="k", connection=connection)
    with pytest.raises(TaskSpecInvalid, match="Priority must lie"):
        async with way(database_url) as connection:
            await hr.submit("a", priority=10**7, connection=connection)


@pytest.mark.parametrize("way", [by_psycopg, by_sqlalchemy, by_sqlalchemy_session], ids=lambda way: way.__name__)
async def test_a_program_without_a_loop_submits_too(hr: Headrace, database_url: str, db: Database, way: Way) -> None:
    async with way(database_url) as connection:
        one = hr.submit_blocking(TaskSpec("report.build", {"pages": 1}), connection=connection)
        two = hr.submit_blocking([TaskSpec("a"), TaskSpec("b")], connection=connection)
    assert await tasks(db) == [*one, *two]


@pytest.mark.parametrize("way", [by_asyncpg, by_psycopg_async, by_sqlalchemy_async], ids=lambda way: way.__name__)
async def test_an_async_connection_cannot_be_used_without_a_loop(hr: Headrace, database_url: str, way: Way) -> None:
    async with way(database_url) as connection:
        with pytest.raises(UnknownConnection, match="await"):
            hr.submit_blocking(TaskSpec("a"), connection=connection)


async def test_a_stranger_is_told_what_is_expected(hr: Headrace) -> None:
    with pytest.raises(UnknownConnection, match="asyncpg, psycopg 3 or SQLAlchemy is expected here, not a object"):
        await hr.submit("a", connection=object())


async def test_errors_that_are_not_ours_stay_the_librarys(hr: Headrace, database_url: str) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        async with by_psycopg(database_url) as connection:
            await hr.submit("a", connection=connection, user_id="u_nobody", trusted=True)


# -- what is checked before anything is sent


async def test_a_bad_payload_does_not_touch_the_callers_transaction(hr: Headrace, database_url: str) -> None:
    async with by_asyncpg(database_url) as connection:
        with pytest.raises(PayloadInvalid, match="pages"):
            await hr.submit("report.build", {"pages": "many"}, connection=connection)
        with pytest.raises(PayloadInvalid, match="NUL"):
            await hr.submit("a", {"x": "\0"}, connection=connection)
        with pytest.raises(PayloadInvalid, match="not JSON"):
            await hr.submit("a", {"x": object()}, connection=connection)
        with pytest.raises(PayloadTooLarge):
            await hr.submit("a", {"x": "y" * 300_000}, connection=connection)
        with pytest.raises(TaskSpecInvalid, match="time zone"):
            await hr.submit("a", run_at=datetime(2030, 1, 1), connection=connection)  # noqa: DTZ001 - that is the point
        assert await connection.fetchval("SELECT 1") == 1


async def test_options_arrive(hr: Headrace, db: Database) -> None:
    later = datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    task_id = await hr.submit(
        "a",
        [1, 2.5, None],
        queue="q",
        priority=3,
        run_at=later,
        max_attempts=2,
        timeout=timedelta(seconds=90),
        limit_key="l",
        labels={"gpu": "yes"},
        trace_id="t-1",
    )
    task = await hr.get(task_id)
    assert (task.payload, task.queue, task.priority, task.run_at) == ([1, 2.5, None], "q", 3, later)
    assert (task.max_attempts, task.timeout_seconds, task.limit_key) == (2, 90, "l")
    assert (task.labels, task.trace_id, task.user_id) == ({"gpu": "yes"}, "t-1", ids.SYSTEM_USER)


async def test_thousands_in_one_transaction(hr: Headrace, db: Database) -> None:
    made = await hr.submit_many([TaskSpec("bulk", {"n": number}) for number in range(2500)])
    assert await tasks(db) == list(made)
    with pytest.raises(TaskSpecInvalid):
        await hr.submit_many([TaskSpec("bulk")] * 1200 + [TaskSpec("bulk", priority=10**7)])
    assert len(await tasks(db)) == 2500
    assert await hr.submit_many([]) == []


# -- waiting and working


async def test_a_program_runs_a_worker_and_waits(hr: Headrace) -> None:
    seen: list[tuple[str, int]] = []
    async with hr.working(QUICK):
        task_id = await hr.submit("report.build", {"pages": 4})
        done = await hr.wait(
            task_id,
            within=timedelta(seconds=15),
            on_progress=lambda task: seen.append((task.status, task.progress)),
        )
    assert (done.status, done.result) == ("SUCCEEDED", {"pages": 4})
    assert seen[-1] == ("SUCCEEDED", 100)


async def test_canceling_the_worker_ends_it_in_good_order(hr: Headrace, db: Database) -> None:
    working = asyncio.create_task(hr.run_worker(QUICK))
    await hr.wait(await hr.submit("report.build", {"pages": 4}), within=timedelta(seconds=15))
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    [worker] = await db.fetch_alone("SELECT ending FROM headrace.workers")
    assert worker["ending"] == "STOPPED"


async def test_what_the_program_raises_beside_a_worker_stays_what_it_is(hr: Headrace, db: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with hr.working(QUICK):
            raise ZeroDivisionError
    assert await db.fetch_alone("SELECT FROM headrace.workers WHERE ended_at IS NULL") == []


async def test_waiting_has_an_end(hr: Headrace) -> None:
    task_id = await hr.submit("nobody.runs.this", unknown_type="wait")
    with pytest.raises(TimeoutError, match="did not end within"):
        await hr.wait(task_id, within=timedelta(milliseconds=100))
    with pytest.raises(TaskNotFound):
        await hr.wait(ids.new("tsk"))


async def test_a_worker_needs_types(database_url: str) -> None:
    async with Headrace(database_url) as bare:
        with pytest.raises(NoRegistry):
            await bare.run_worker()


# -- the front door


def test_every_name_of_the_front_door_is_there() -> None:
    for name in headrace.__all__:
        assert getattr(headrace, name) is not None
    assert set(headrace.__all__) <= set(dir(headrace))
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = headrace.Nonsense


def test_importing_headrace_loads_next_to_nothing() -> None:
    program = (
        "import sys, headrace; "
        "print(len([m for m in sys.modules if m.startswith('headrace.')]), "
        "[m for m in ('asyncpg', 'httpx2', 'pydantic', 'fastapi') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "0 []"


def test_neither_psycopg_nor_sqlalchemy_is_loaded_by_us() -> None:
    program = (
        "import sys, headrace; headrace.Headrace; print([m for m in ('psycopg', 'sqlalchemy') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_nothing_is_printed_to_the_programs_standard_output(database_url: str) -> None:
    program = """
import asyncio, logging, sys
from headrace import Headrace, Registry
registry = Registry()
@registry.task("noop")
async def noop(context, payload): ...
async def main():
    async with Headrace(sys.argv[1], registry) as hr, hr.working():
        await hr.wait(await hr.submit("noop"))
logging.basicConfig(level=sys.argv[2])
asyncio.run(main())
"""
    for level, expected in (("WARNING", ""), ("INFO", "INFO:headrace.tasks.worker.loop:event='worker.entered'")):
        ran = subprocess.run(
            [sys.executable, "-c", program, database_url, level], capture_output=True, text=True, check=True
        )
        assert ran.stdout == ""
        assert ran.stderr.startswith(expected)
        assert bool(ran.stderr) == bool(expected)

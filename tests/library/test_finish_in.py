"""``context.finish_in`` on whatever connection a handler has: its writes and the end are committed together. D-08."""

import asyncio
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy

from headrace import Registry, TaskContext
from headrace.connections import NoTransaction, UnknownConnection
from headrace.database import Database
from headrace.library.program import Headrace
from headrace.tasks.context import BlockingTaskContext
from headrace.tasks.execution import Backoff
from headrace.tasks.model import TaskStatus
from tests.library.test_headrace import (
    WAYS,
    Way,
    by_asyncpg,
    by_psycopg,
    by_sqlalchemy,
    by_sqlalchemy_session,
    for_libpq,
    for_sqlalchemy,
)
from tests.outbox.hearing import want
from tests.tasks.conftest import AT_ONCE
from tests.tasks.people import told

PAID = "INSERT INTO headrace.rate_limits (bucket, tat) VALUES ('paid', now())"
RESULT = {"paid": True, "note": "100 % ':x' $1 Größe"}


async def write(connection: Any) -> None:
    """A write of the program's own, in the library's way."""
    root = type(connection).__module__.partition(".")[0]
    done = connection.execute(sqlalchemy.text(PAID.replace(":", "\\:")) if root == "sqlalchemy" else PAID)
    if hasattr(done, "__await__"):
        await done


async def paid(db: Database) -> int:
    return int((await db.fetch_alone("SELECT count(*) FROM headrace.rate_limits WHERE bucket = 'paid'"))[0][0])


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_what_a_handler_writes_and_the_end_are_committed_together(
    database_url: str, db: Database, way: Way
) -> None:
    await want(db)
    registry = Registry()

    @registry.task("pay", backoff=AT_ONCE)
    async def pay(context: TaskContext, payload: Any) -> None:
        async with way(database_url) as connection:
            await write(connection)
            await context.finish_in(connection, RESULT)
            if context.attempt == 1:
                raise RuntimeError("all of it is rolled back")

    async with Headrace(database_url, registry) as hr, hr.working():
        task = await hr.wait(await hr.submit("pay"))
    assert (task.status, task.attempt, task.result) == (TaskStatus.SUCCEEDED, 2, RESULT)
    assert await paid(db) == 1
    assert await told(db, task.id) == ["created", "started", "retried", "started", "succeeded"]


@pytest.mark.parametrize("way", [by_psycopg, by_sqlalchemy, by_sqlalchemy_session], ids=lambda way: way.__name__)
async def test_a_handler_in_a_thread_has_it_too(database_url: str, db: Database, way: Way) -> None:
    registry = Registry()

    @registry.task("pay")
    def pay(context: BlockingTaskContext, payload: Any) -> None:
        async def both() -> None:  # the ways are async; what they open is not
            async with way(database_url) as connection:
                await write(connection)
                context.finish_in(connection, RESULT)

        asyncio.run(both())

    async with Headrace(database_url, registry) as hr, hr.working():
        task = await hr.wait(await hr.submit("pay"))
    assert (task.status, task.result, await paid(db)) == (TaskStatus.SUCCEEDED, RESULT, 1)


async def test_the_first_statement_of_sqlalchemys_transaction_may_be_ours(database_url: str, db: Database) -> None:
    """It begins the transaction with its own first statement: without one, ours would be committed by itself."""
    registry = Registry()

    @registry.task("pay", backoff=AT_ONCE)
    async def pay(context: TaskContext, payload: Any) -> None:
        for way in WAYS:
            try:
                async with way(database_url) as connection:
                    await context.finish_in(connection)
                    raise RuntimeError
            except RuntimeError:
                rows = await db.fetch_alone("SELECT status FROM headrace.tasks WHERE status = 'SUCCEEDED'")
                assert not rows, way.__name__

    async with Headrace(database_url, registry) as hr, hr.working():
        task = await hr.wait(await hr.submit("pay"))
    assert (task.status, task.attempt) == (TaskStatus.SUCCEEDED, 1)


async def test_what_is_no_connection_or_has_no_transaction_is_refused_by_name(database_url: str) -> None:
    registry, refused = Registry(), []

    @registry.task("pay")
    async def pay(context: TaskContext, payload: Any) -> None:
        engine = sqlalchemy.create_engine(for_sqlalchemy(database_url, "psycopg"))
        plain = await asyncpg.connect(database_url)
        with psycopg.connect(for_libpq(database_url), autocommit=True) as autocommit:
            for stranger in (object(), None, engine, plain, autocommit):
                with pytest.raises((UnknownConnection, NoTransaction)) as told:
                    await context.finish_in(stranger)
                refused.append(str(told.value))
        engine.dispose()
        await plain.close()

    async with Headrace(database_url, registry) as hr, hr.working():
        assert (await hr.wait(await hr.submit("pay"))).status is TaskStatus.SUCCEEDED
    assert [each.rpartition("not a ")[2] for each in refused[:3]] == ["object.", "NoneType.", "Engine."]
    assert all("no open transaction" in each for each in refused[3:])


async def test_a_handler_in_a_thread_is_told_that_its_connection_is_asynchronous(database_url: str) -> None:
    registry = Registry()

    @registry.task("pay", max_attempts=1)
    def pay(context: BlockingTaskContext, payload: Any) -> None:
        async def both() -> None:
            async with by_asyncpg(database_url) as connection:
                context.finish_in(connection)

        asyncio.run(both())

    async with Headrace(database_url, registry) as hr, hr.working():
        task = await hr.wait(await hr.submit("pay"))
    assert task.status is TaskStatus.FAILED
    assert "it must be a blocking one" in (task.error_message or "")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_who_lost_the_task_learns_it_on_every_connection(database_url: str, db: Database, way: Way) -> None:
    registry, lost = Registry(), []

    @registry.task("pay", backoff=Backoff())
    async def pay(context: TaskContext, payload: Any) -> None:
        from headrace.tasks.errors import LeaseLost

        await db.fetch_alone("UPDATE headrace.task_queue SET attempt = attempt + 1 WHERE task_id = $1", context.task_id)
        try:
            async with way(database_url) as connection:
                await write(connection)
                await context.finish_in(connection)
        except LeaseLost:
            lost.append(context.task_id)
        await db.fetch_alone("UPDATE headrace.task_queue SET attempt = attempt - 1 WHERE task_id = $1", context.task_id)

    async with Headrace(database_url, registry) as hr, hr.working():
        task = await hr.wait(await hr.submit("pay"))
    assert (lost, await paid(db)) == ([task.id], 0)

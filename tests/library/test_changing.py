"""``Headrace`` looks at tasks, cancels and retries them, in the caller's transaction, and the trail hears of it."""

from typing import Any

import pytest

from headrace import Registry, TaskContext, TaskStatus
from headrace.access import PreconditionFailed
from headrace.accounts.errors import UserNotFound
from headrace.connections import NoTransaction
from headrace.database import Database
from headrace.library.program import Headrace
from headrace.tasks.errors import TaskNotFound, TaskNotOver, TaskOver
from tests.edge import stand
from tests.library.test_headrace import Way, by_asyncpg, by_psycopg, by_psycopg_tuples, by_sqlalchemy_async_session
from tests.outbox.hearing import want
from tests.tasks.people import told, trail

registry = Registry()


@registry.task("never")
async def never(context: TaskContext, payload: Any) -> None: ...


class _GiveUp(Exception):
    pass


@pytest.mark.parametrize(
    "way", [by_asyncpg, by_psycopg, by_psycopg_tuples, by_sqlalchemy_async_session], ids=lambda way: way.__name__
)
async def test_what_is_changed_belongs_to_the_callers_transaction(database_url: str, db: Database, way: Way) -> None:
    await want(db)
    async with Headrace(database_url, registry) as hr:
        task_id = await hr.submit("never", {"n": 1})
        with pytest.raises(_GiveUp):
            async with way(database_url) as connection:
                await hr.cancel(task_id, connection=connection)
                seen = await hr.get(task_id, connection=connection)
                assert (seen.status, seen.payload) == (TaskStatus.CANCELED, {"n": 1})
                raise _GiveUp
        assert (await hr.get(task_id)).status is TaskStatus.QUEUED
        assert await trail(db) == []
        async with way(database_url) as connection:
            await hr.cancel(task_id, connection=connection)
            await hr.cancel(task_id, connection=connection)  # once is enough
            await hr.retry(task_id, connection=connection)
            assert (await hr.get(task_id)).version == 0  # not for others yet
    async with Headrace(database_url) as elsewhere:  # a program that does not have the type
        again = await elsewhere.cancel(task_id, version=2)
    assert again.status is TaskStatus.CANCELED
    assert await told(db, task_id) == ["created", "canceled", "revived", "canceled"]
    events = await trail(db)
    assert [event["data"]["verb"] for event in events] == ["cancel", "retry", "cancel"]
    assert {(event["user"]["username"], event["actor_type"]) for event in events} == {("system", "SYSTEM")}
    assert all(event["user_agent"].startswith("headrace library (") for event in events)


async def test_in_a_users_name_only_their_own_tasks_are_found(database_url: str, db: Database) -> None:
    ada, eve = await stand.user(db, "ada"), await stand.user(db, "eve")
    async with Headrace(database_url, registry) as hr:
        task_id = await hr.submit("never", user_id=ada, trusted=True)
        assert await hr.find(task_id, user_id=eve) is None
        assert (await hr.get(task_id, user_id=ada)).user_id == ada
        for verb in (hr.get, hr.cancel, hr.retry):
            with pytest.raises(TaskNotFound):
                await verb(task_id, user_id=eve)
        with pytest.raises(UserNotFound):
            await hr.cancel(task_id, user_id="u_nobody")
        with pytest.raises(TaskNotOver):
            await hr.retry(task_id, user_id=ada)
        with pytest.raises(PreconditionFailed):
            await hr.cancel(task_id, user_id=ada, version=7)
        await hr.cancel(task_id, user_id=ada)
        (event,) = await trail(db)
        assert (event["user"]["uid"], event["actor_type"]) == (ada, "USER")


async def test_what_cannot_be_changed_is_refused(database_url: str) -> None:
    import asyncpg

    async with Headrace(database_url, registry) as hr, hr.working():
        done = await hr.wait(await hr.submit("never"))
        for verb in (hr.cancel, hr.retry):
            with pytest.raises(TaskOver):
                await verb(done.id)
        assert await hr.find("tsk_nothing") is None
        connection = await asyncpg.connect(database_url)
        try:
            with pytest.raises(NoTransaction):
                await hr.cancel(done.id, connection=connection)
        finally:
            await connection.close()

"""``headrace.submit`` with a key: one key, one task, in the caller's transaction. D-06."""

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg
import pytest

from headrace.database import Database
from headrace.tasks.catalog import declare_types
from headrace.tasks.registry import Registry
from tests.outbox.hearing import want
from tests.tasks.conftest import Bench
from tests.tasks.sql import caller, count, nothing, submit

pytestmark = pytest.mark.both


async def test_one_key_gives_one_task(db: Database) -> None:
    await want(db)
    first = await submit(db, payload={"a": 1, "b": 2}, idempotency_key="k")
    again = await submit(db, payload={"b": 2, "a": 1}, idempotency_key="k", trace_id="another try")
    assert first == again
    assert (await count(db, "tasks"), await count(db, "task_queue"), await count(db, "outbox_events")) == (1, 1, 1)


@pytest.mark.parametrize(
    "other",
    [{"payload": {"n": 2}}, {"name": "other.type"}, {"priority": 1}, {"title": "t"}, {"labels": {"a": "b"}}],
    ids=lambda other: str(*other),
)
async def test_the_same_key_for_another_task_is_refused(db: Database, other: dict[str, Any]) -> None:
    await submit(db, payload={"n": 1}, idempotency_key="k")
    with pytest.raises(asyncpg.PostgresError, match="the idempotency key 'k' was used for another task") as refused:
        await submit(db, **{"payload": {"n": 1}, "idempotency_key": "k", **other})
    assert refused.value.sqlstate == "HR002"
    assert "fresh key" in str(refused.value.hint)
    assert await count(db, "tasks") == 1


async def test_a_key_is_its_users_own(bench: Bench) -> None:
    ada, grace = await bench.user("ada"), await bench.user("grace")
    made = {await submit(bench.db, idempotency_key="k", user_id=user) for user in (ada, grace, ada)}
    assert len(made) == 2


async def test_an_expired_key_is_as_good_as_none(db: Database) -> None:
    first = await submit(db, idempotency_key="k")
    await db.fetch_alone("UPDATE headrace.idempotency_keys SET expires_at = now() - interval '1 s'")
    assert await submit(db, payload={"other": True}, idempotency_key="k") != first


async def test_a_changed_default_does_not_make_it_another_task(db: Database) -> None:
    first = await submit(db, idempotency_key="k")
    registry = Registry()
    registry.task("report.build", priority=3, queue="new")(nothing)
    async with db.transaction() as tx:
        await declare_types(tx, registry)
    assert await submit(db, idempotency_key="k") == first


async def test_one_key_gives_one_task_under_load(db: Database) -> None:
    await want(db)
    made = await asyncio.gather(*(submit(db, idempotency_key="k") for _ in range(40)))
    assert len(set(made)) == 1
    assert (await count(db, "tasks"), await count(db, "outbox_events")) == (1, 1)


async def test_whoever_waits_for_a_key_goes_first_when_the_first_is_rolled_back(
    database_url: str, db: Database
) -> None:
    async with caller(database_url) as first, caller(database_url) as second:
        transaction = first.transaction()
        await transaction.start()
        given_up = await first.fetchval("SELECT headrace.submit('a', unknown_type => 'wait', idempotency_key => 'k')")
        waiting = asyncio.create_task(
            second.fetchval("SELECT headrace.submit('a', unknown_type => 'wait', idempotency_key => 'k')")
        )
        await _until_waiting(db)
        await transaction.rollback()
        made = await waiting
    assert made != given_up
    assert [row["id"] for row in await db.fetch_alone("SELECT id FROM headrace.tasks")] == [made]


async def test_it_goes_with_the_callers_transaction(database_url: str, db: Database) -> None:
    async with caller(database_url) as program:
        with suppress(ZeroDivisionError):
            async with program.transaction():
                await program.fetchval("SELECT headrace.submit('a', unknown_type => 'wait', idempotency_key => 'k')")
                raise ZeroDivisionError
        for table in ("tasks", "task_queue", "task_lanes", "outbox_events", "idempotency_keys"):
            assert await count(db, table) == 0
        async with program.transaction():
            await program.fetchval("SELECT headrace.submit('a', unknown_type => 'wait', idempotency_key => 'k')")
    assert await count(db, "tasks") == 1


_BLOCKED = """
SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0
"""


async def _until_waiting(db: Database) -> None:
    """Until a connection to this database waits for another's lock."""
    async with asyncio.timeout(60):
        while not await db.fetch_alone(_BLOCKED):
            await asyncio.sleep(0.01)

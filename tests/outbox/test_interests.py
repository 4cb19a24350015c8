"""Interests in events: declared, replaced, withdrawn; one that commits gets whatever commits after it. W-12."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from headrace.database import Database, Tx
from headrace.outbox import interests
from headrace.outbox.interests import EventWritersBusy, Interest

STORED = "SELECT consumer, key, pattern, user_id, task_type FROM headrace.event_interests ORDER BY id"
HOLD = "SELECT headrace.hold_event_interests()"
ALL_TASKS = [Interest("task.*")]


async def stored(tx: Tx) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await tx.fetch(STORED)]


async def test_declaring_replaces_what_the_same_part_of_a_consumer_wanted(tx: Tx) -> None:
    await interests.declare(
        tx, "webhooks", "whe_1", [Interest("task.created"), Interest("task.failed", "u_1", "IMAGE")]
    )
    await interests.declare(tx, "webhooks", "whe_2", ALL_TASKS)
    await interests.declare(tx, "webhooks", "whe_1", [Interest("task.failed", "u_1", "IMAGE"), Interest("*")])
    assert await stored(tx) == [
        ("webhooks", "whe_1", "task.failed", "u_1", "IMAGE"),
        ("webhooks", "whe_2", "task.*", None, None),
        ("webhooks", "whe_1", "*", None, None),
    ]
    await interests.withdraw(tx, "webhooks", "whe_1")
    assert await stored(tx) == [("webhooks", "whe_2", "task.*", None, None)]


@pytest.mark.parametrize("pattern", ["", "task", "a.b.*", "a_1.b2", "*"])
async def test_patterns_are_types_or_their_beginnings(tx: Tx, pattern: str) -> None:
    if pattern:
        await interests.declare(tx, "webhooks", "", [Interest(pattern)])
    for wrong in ("", "*.created", "task.*.x", "task*", "Task.created", "task."):
        with pytest.raises(asyncpg.CheckViolationError, match="ck_event_interests_pattern"):
            async with tx.savepoint():
                await interests.declare(tx, "webhooks", "x", [Interest(wrong)])


async def test_an_interest_waits_for_those_who_have_decided_without_it(db: Database) -> None:
    async def subscribe() -> None:
        async with db.transaction() as tx:
            await interests.declare(tx, "webhooks", "", ALL_TASKS)

    async with db.transaction() as writer:
        await writer.execute(HOLD)
        subscribing = asyncio.create_task(subscribe())
        await asyncio.sleep(0.2)
        assert not subscribing.done()
        async with db.transaction() as other:  # others are not held up for longer than a moment
            await other.execute(HOLD)
    async with asyncio.timeout(60):
        await subscribing


async def test_a_writer_sees_the_interest_that_it_waited_for(db: Database) -> None:
    async def decide() -> bool:
        async with db.transaction() as tx:
            await tx.execute(HOLD)
            return bool(await tx.fetchval("SELECT EXISTS (SELECT FROM headrace.event_interests)"))

    async with db.transaction() as tx:
        await interests.declare(tx, "webhooks", "", ALL_TASKS)
        deciding = asyncio.create_task(decide())
        await asyncio.sleep(0.1)
        assert not deciding.done()
    async with asyncio.timeout(60):
        assert await deciding


async def test_a_transaction_that_stays_open_is_an_error_and_no_endless_wait(db: Database) -> None:
    async with db.transaction() as writer:
        await writer.execute(HOLD)
        with pytest.raises(EventWritersBusy):
            async with db.transaction() as tx:
                await interests.declare(tx, "webhooks", "", ALL_TASKS, patience=timedelta(milliseconds=100))
        async with db.transaction() as tx:  # nothing new is wanted: nobody to wait for
            await interests.withdraw(tx, "webhooks", "")

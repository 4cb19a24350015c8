"""A refund cancels the tasks that wait with its units: five of five with a later run_at succeeded after the refund."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.billing import granting
from headrace.billing.maintenance import BillingJobs, add_handlers
from headrace.billing.refunded_tasks import CANCEL_REFUNDED, cancel_waiting
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.service import cancel_task, retry_task
from tests.billing import stand
from tests.tasks.conftest import Bench
from tests.tasks.people import person, tasks_of


async def test_tasks_that_wait_are_canceled_with_the_refund_of_their_units(bench: Bench) -> None:
    go_on = asyncio.Event()

    @bench.registry.task("render", units=1, max_attempts=1)
    async def render(context: TaskContext, payload: Any) -> None:
        await go_on.wait()

    add_handlers(bench.registry, bench.db, BillingJobs(), lambda: tasks_of(bench), queue="headrace")
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    ada, bob = await bench.user("ada"), await bench.user("bob")
    refunded = await stand.grant_alone(bench.db, ada, 10, ends_in=timedelta(days=2))
    await stand.grant_alone(bench.db, bob, 10)
    later = datetime.now(UTC) + timedelta(hours=1)
    async with bench.working():
        running = await bench.submit("render", user_id=ada)
        await bench.until(running, lambda row: row["status"] == "RUNNING")
        delayed = [await bench.submit("render", user_id=ada, run_at=later) for _ in range(5)]
        unfit = await bench.submit("render", user_id=ada, labels={"gpu": "none"})
        others = await bench.submit("render", user_id=bob, run_at=later)
        kept = await stand.grant_alone(bench.db, ada, 3, ends_in=timedelta(days=1))  # spent first from now on
        paid_otherwise = await bench.submit("render", user_id=ada, run_at=later)
        async with bench.db.transaction() as tx:
            assert await granting.suspend_entitlement(tx, refunded)
            assert not await granting.suspend_entitlement(tx, refunded)  # once
        for row in await bench.over(*delayed, unfit):
            assert row["status"] == "CANCELED"
            assert await stand.entries(bench.db, row["id"]) == [
                ("HELD", 1, "TASK_CREATE"),
                ("RELEASED", 1, "TASK_CANCEL"),
            ]
        async with bench.db.transaction() as tx:
            [task_id] = [
                row["id"]
                for row in await tx.fetch("SELECT id FROM headrace.tasks WHERE task_type = $1", CANCEL_REFUNDED)
            ]
        assert (await bench.over(task_id))[0]["result"] == {"canceled": 6}
        go_on.set()
        assert (await bench.over(running))[0]["status"] == "SUCCEEDED"
    assert [(await bench.row(task))["status"] for task in (others, paid_otherwise)] == ["QUEUED"] * 2
    assert (await stand.left(bench.db, refunded), await stand.left(bench.db, kept)) == (9, 2)


async def test_a_ready_task_does_not_start_between_the_refund_and_its_cancellation(bench: Bench) -> None:
    ran = []

    @bench.registry.task("render", units=1)
    async def render(context: TaskContext, payload: Any) -> None:
        ran.append(context.task_id)

    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    ada = await bench.user("ada")
    refunded = await stand.grant_alone(bench.db, ada, 10)
    ready = await bench.submit("render", user_id=ada)
    async with bench.db.transaction() as tx:
        assert await granting.suspend_entitlement(tx, refunded)
    other = await stand.grant_alone(bench.db, ada, 3)
    async with bench.working():  # without the handler that cancels: that one is slow today
        paid = await bench.submit("render", user_id=ada)
        assert (await bench.over(paid))[0]["status"] == "SUCCEEDED"
    assert ran == [paid]
    assert (await bench.row(ready))["status"] == "QUEUED"
    assert await stand.left(bench.db, other) == 2


async def test_a_task_that_holds_other_units_by_now_is_not_canceled(bench: Bench) -> None:
    bench.registry.task("render", units=1)(lambda _context, _payload: None)
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    ada = await person(bench)
    refunded = await stand.grant_alone(bench.db, ada.user_id, 1, ends_in=timedelta(days=1))
    task_id = await bench.submit("render", user_id=ada.user_id)
    other = await stand.grant_alone(bench.db, ada.user_id, 1, ends_in=timedelta(hours=1))  # spent first from now on
    async with bench.db.transaction() as tx:
        await cancel_task(tx, tasks_of(bench), ada, task_id)
        await retry_task(tx, tasks_of(bench), ada, task_id)
    assert await stand.left(bench.db, other) == 0
    async with bench.db.transaction() as tx:
        assert await granting.suspend_entitlement(tx, refunded)
    assert await cancel_waiting(bench.db, lambda: tasks_of(bench), refunded) == 0
    [place] = await bench.db.fetch_alone("SELECT delayed FROM headrace.task_queue WHERE task_id = $1", task_id)
    assert not place["delayed"]

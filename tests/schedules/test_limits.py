"""What bounds a run: its time, its grace, the number of runs at once, and who goes first."""

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.schedules.due import MisfireConfig
from headrace.schedules.executions import cancel_execution
from headrace.schedules.service import run_schedule, update_schedule
from headrace.tasks.context import TaskContext
from tests.races.engine_types import registry as long_types
from tests.schedules.conftest import Clockwork, miscounted
from tests.tasks.isolation.stand import is_gone

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.long
async def test_a_run_that_will_not_hear_is_killed_and_its_retry_is_a_new_row(
    clockwork: Clockwork, tmp_path: Path
) -> None:  # S-05 S-06
    clockwork.registry = long_types
    told = tmp_path / "told"
    schedule = await clockwork.create(
        task_type="deaf", data={"told": str(told)}, max_duration_seconds=1, timeout_grace_period=0, max_retries=1
    )
    async with clockwork.working(children=1):
        async with clockwork.db.transaction() as tx:
            await run_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid)
        runs = await clockwork.until_runs(schedule.uid, "timeout", "timeout", seconds=120)
    assert [run["retry_count"] for run in runs] == [0, 1]
    assert {run["error_message"] for run in runs} == {"It ran longer than 1 s."}
    assert all(run["finished_at"] >= run["deadline_at"] for run in runs)
    children = [int(line.split()[1]) for line in told.read_text().splitlines()]
    assert len(children) == 2
    assert all(is_gone(pid) for pid in children)
    assert os.getpid() not in children
    assert (await clockwork.schedule(schedule.uid))["failure_executions"] == 1
    assert await miscounted(clockwork.db) == []


async def test_waiting_for_a_process_is_not_running(clockwork: Clockwork, tmp_path: Path) -> None:  # S-05
    clockwork.registry = long_types
    told = tmp_path / "told"
    spec: dict[str, Any] = {"task_type": "brief", "timeout_grace_period": 0, "max_retries": 0}
    long = await clockwork.create(
        "long", data={"told": str(told), "seconds": 1.3}, max_duration_seconds=30, priority=1, **spec
    )
    short = await clockwork.create("short", data={"told": str(told), "seconds": 0}, max_duration_seconds=1, **spec)
    async with clockwork.db.transaction() as tx:
        for each in (long, short):
            await run_schedule(tx, clockwork.tasks, clockwork.caller, each.uid)
    async with clockwork.working(children=1):
        async with asyncio.timeout(60):
            while [row["state"] for row in await clockwork.runs(long.uid)] != ["running"]:
                await asyncio.sleep(0.02)
        # The worker has both in its hands; only one has a process.
        assert [run["state"] for run in await clockwork.runs(short.uid)] == ["pending"]
        (before,) = await clockwork.until_runs(long.uid, "success")
        (run,) = await clockwork.until_runs(short.uid, "success")
    assert run["started_at"] > before["started_at"] + timedelta(seconds=1.2)
    assert run["deadline_at"] == run["started_at"] + timedelta(seconds=1)


async def test_due_runs_start_by_priority(clockwork: Clockwork) -> None:  # S-07
    order: list[int] = []

    @clockwork.registry.task("ordered")
    async def ordered(_: TaskContext, payload: Any) -> None:
        order.append(payload["priority"])

    priorities = [0, 7, -3, 100, 5]
    uids = [
        (await clockwork.create(f"p{each}", "ordered", run_at=NOON, priority=each, data={"priority": each})).uid
        for each in priorities
    ]
    await clockwork.fire(NOON)
    async with clockwork.working(concurrency=1):
        for uid in uids:
            await clockwork.until_runs(uid, "success")
    assert order == sorted(priorities, reverse=True)


async def test_more_slots_start_what_waits(clockwork: Clockwork) -> None:  # S-07
    gate = asyncio.Event()
    running: list[int] = []

    @clockwork.registry.task("gated")
    async def gated(context: TaskContext, _: Any) -> None:
        running.append(context.attempt)
        await gate.wait()

    schedule = await clockwork.create(task_type="gated", interval=10, run_at=NOON)
    async with clockwork.working():
        await clockwork.fire(NOON + timedelta(seconds=40))
        async with asyncio.timeout(60):
            while len(running) < 1:
                await asyncio.sleep(0.01)
        async with clockwork.db.transaction() as tx:
            await update_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid, {"max_concurrent": 3})
        async with asyncio.timeout(60):
            while len(running) < 3:
                await asyncio.sleep(0.01)
        assert [run["task_id"] is None for run in await clockwork.runs(schedule.uid)] == [False] * 3 + [True] * 2
        gate.set()
        await clockwork.until_runs(schedule.uid, *["success"] * 5)
    assert await miscounted(clockwork.db) == []


async def test_a_run_that_waits_and_cannot_be_submitted_any_more_has_failed(clockwork: Clockwork) -> None:
    schedule = await clockwork.create(interval=10, run_at=NOON)
    await clockwork.fire(NOON + timedelta(seconds=20))
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET type = 'gone'")
    async with clockwork.working():
        runs = await clockwork.until_runs(schedule.uid, "success", "failure", "failure")
    assert "gone" in runs[1]["error_message"]
    assert await miscounted(clockwork.db) == []


async def test_any_number_that_waits_can_be_refused_at_once(clockwork: Clockwork) -> None:
    schedule = await clockwork.create(interval=1, run_at=NOON)
    late = timedelta(seconds=1500)
    await clockwork.fire(NOON + late, misfires=MisfireConfig(after=late))
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET type = 'gone'")
    async with clockwork.working():
        await clockwork.until_runs(schedule.uid, "success", *["failure"] * 1500)
    assert await miscounted(clockwork.db) == []


# Others have locks on this server, too.
WAITING_FOR = "SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))"


async def test_a_run_that_is_given_a_task_while_it_is_canceled_is_canceled_all_the_same(clockwork: Clockwork) -> None:
    schedule = await clockwork.create(interval=10, run_at=NOON)
    await clockwork.fire(NOON + timedelta(seconds=10))
    uid = (await clockwork.runs(schedule.uid))[1]["execution_uid"]

    async def cancel() -> None:
        async with clockwork.db.transaction() as tx:
            await cancel_execution(tx, clockwork.tasks, clockwork.caller, uid)

    async with clockwork.db.transaction() as tx:
        await update_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid, {"max_concurrent": 2})
        canceling = asyncio.create_task(cancel())
        holder = await tx.fetchval("SELECT pg_backend_pid()")
        while not await clockwork.db.fetch_alone(WAITING_FOR, holder):
            await asyncio.sleep(0.01)
    await canceling
    assert [run["state"] for run in await clockwork.runs(schedule.uid)] == ["pending", "cancelled"]
    assert await miscounted(clockwork.db) == []

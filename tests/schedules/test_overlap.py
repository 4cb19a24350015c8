"""Overlap policies: what becomes of a due time while all slots of its schedule are taken."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from headrace.schedules.due import MisfireConfig
from headrace.schedules.firing import fire_due
from headrace.schedules.service import disable_schedule, run_schedule
from headrace.tasks.context import TaskContext
from tests.schedules.conftest import Clockwork, miscounted
from tests.tasks.people import hire, take

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BEAT = timedelta(seconds=10)


def shown(runs: list[Any]) -> list[str]:
    return [f"{run['state']}{'' if run['task_id'] else ' without a task'}" for run in runs]


@pytest.mark.parametrize(
    ("spec", "runs", "skipped"),
    [
        ({}, ["pending", *["pending without a task"] * 3], 0),
        ({"max_waiting": 2}, ["pending", *["pending without a task"] * 2], 1),
        ({"overlap_policy": "queue_one"}, ["pending", "pending without a task"], 2),
        ({"overlap_policy": "skip"}, ["pending"], 3),
        ({"overlap_policy": "skip", "max_concurrent": 3}, ["pending"] * 3, 1),
        ({"overlap_policy": "cancel_running"}, [*["cancelled"] * 3, "pending"], 0),
        ({"overlap_policy": "cancel_running", "max_concurrent": 2}, [*["cancelled"] * 2, "pending", "pending"], 0),
    ],
    ids=lambda each: "-".join(map(str, each.values())) if isinstance(each, dict) else "",
)
async def test_each_policy_lets_due_times_wait_or_leaves_them_out(
    clockwork: Clockwork, spec: dict[str, Any], runs: list[str], skipped: int
) -> None:  # S-07 S-09
    schedule = await clockwork.create(interval=10, run_at=NOON, **spec)
    for beat in range(4):
        await clockwork.fire(NOON + beat * BEAT)
    assert shown(await clockwork.runs(schedule.uid)) == runs
    assert (await clockwork.schedule(schedule.uid))["skipped_runs"] == skipped
    assert await miscounted(clockwork.db) == []


async def test_what_a_policy_leaves_out_is_no_warning_and_what_was_missed_is(clockwork: Clockwork) -> None:
    """A schedule every few seconds that skips by its own policy wrote 597 warnings in an hour."""
    await clockwork.create(interval=10, run_at=NOON, overlap_policy="skip")
    scheduler = clockwork.scheduler()
    with structlog.testing.capture_logs() as lines:
        for beat in range(4):
            await scheduler.run_once(now=NOON + beat * BEAT)
        assert [(line["log_level"], line["runs"]) for line in lines if line["event"] == "scheduler.skipped"] == (
            [("debug", 1)] * 3
        )
        await scheduler.run_once(now=NOON + 100 * BEAT)
    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert [(line["event"], line["runs"]) for line in warnings] == [("scheduler.missed", 96)]


@pytest.mark.parametrize(
    ("spec", "times", "skipped"),
    [
        ({"max_waiting": 2}, [0, 1, 2], 2),
        ({"overlap_policy": "queue_one"}, [0, 1], 3),
        ({"overlap_policy": "skip"}, [0], 4),
        ({"overlap_policy": "cancel_running", "max_concurrent": 2}, [3, 4], 3),
    ],
    ids=lambda each: "-".join(map(str, each.values())) if isinstance(each, dict) else "",
)
async def test_several_due_times_at_once_are_chosen_from(
    clockwork: Clockwork, spec: dict[str, Any], times: list[int], skipped: int
) -> None:
    schedule = await clockwork.create(interval=10, run_at=NOON, **spec)
    await clockwork.fire(NOON + 4 * BEAT)
    assert [(run["scheduled_at"] - NOON) // BEAT for run in await clockwork.runs(schedule.uid)] == times
    assert (await clockwork.schedule(schedule.uid))["skipped_runs"] == skipped


async def test_a_later_run_takes_the_place_of_the_one_that_runs(clockwork: Clockwork) -> None:
    began: list[str] = []
    gate = asyncio.Event()

    @clockwork.registry.task("endless")
    async def endless(context: TaskContext, _: Any) -> None:
        began.append(context.task_id)
        await gate.wait()

    schedule = await clockwork.create(task_type="endless", interval=10, run_at=NOON, overlap_policy="cancel_running")
    async with clockwork.working():
        await clockwork.fire(NOON)
        await clockwork.until_runs(schedule.uid, "running")
        await clockwork.fire(NOON + BEAT)
        first, _ = await clockwork.until_runs(schedule.uid, "cancelled", "running")
        assert first["error_message"].startswith("Canceled for a later run")
        async with clockwork.db.transaction() as tx:
            await disable_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid)
        async with clockwork.scheduling(poll_every=timedelta(minutes=5)):
            async with clockwork.db.transaction() as tx:  # so does one by hand, and wakes who sees to it
                await run_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid)
            await clockwork.until_runs(schedule.uid, "cancelled", "cancelled", "running")
        gate.set()
        await clockwork.until_runs(schedule.uid, "cancelled", "cancelled", "success")
    assert len(set(began)) == len(began) == 3
    assert await miscounted(clockwork.db) == []


async def test_who_dies_before_the_running_one_is_told_leaves_it_to_the_next_scheduler(clockwork: Clockwork) -> None:
    schedule = await clockwork.create(interval=10, run_at=NOON, overlap_policy="cancel_running")
    await clockwork.fire(NOON)
    (claimed,) = await take(clockwork, await hire(clockwork))
    async with clockwork.db.transaction() as tx:  # it fires, and that is the last that is heard of it
        await fire_due(tx, clockwork.submitter, MisfireConfig(), now=NOON + BEAT, limit=10)
    for _ in range(2):
        await clockwork.fire(NOON + BEAT)  # nothing is due
    (row,) = await clockwork.db.fetch_alone(
        "SELECT cancel_requested_at, version FROM headrace.tasks WHERE id = $1", claimed.task_id
    )
    assert (row["cancel_requested_at"] is not None, row["version"]) == (True, 1)  # told once
    await clockwork.fire(NOON + 2 * BEAT)
    assert shown(await clockwork.runs(schedule.uid)) == [
        "pending", "cancelled without a task", "pending without a task"
    ]  # fmt: skip
    assert await miscounted(clockwork.db) == []


AT_ONCE = """
SELECT count(*) FROM headrace.task_executions WHERE state IN ('pending', 'running') AND task_id IS NOT NULL
"""


@pytest.mark.parametrize("policy", ["queue_all", "queue_one", "skip", "cancel_running"])
async def test_schedulers_that_fire_at_once_double_nothing(clockwork: Clockwork, policy: str) -> None:  # S-14
    beats = 12

    @clockwork.registry.task("short")
    async def short(_: TaskContext, __: Any) -> None:
        await asyncio.sleep(0.02)

    schedule = await clockwork.create(task_type="short", interval=10, run_at=NOON, overlap_policy=policy)
    schedulers = [clockwork.scheduler() for _ in range(3)]
    async with clockwork.working():
        for beat in range(beats):
            now = NOON + beat * BEAT
            await asyncio.gather(*(each.run_once(now=now) for each in schedulers))
            (active,) = await clockwork.db.fetch_alone(AT_ONCE)
            assert active[0] <= 1
        # One that was locked at its last moment, by the others or by a run that ends, is fired with a later look.
        async with asyncio.timeout(60):
            while (await clockwork.schedule(schedule.uid))["next_run"] < NOON + beats * BEAT or any(
                run["finished_at"] is None for run in await clockwork.runs(schedule.uid)
            ):
                await clockwork.fire(NOON + (beats - 1) * BEAT)
    runs = await clockwork.runs(schedule.uid)
    assert len({run["scheduled_at"] for run in runs}) == len(runs)
    row = await clockwork.schedule(schedule.uid)
    assert len(runs) + row["skipped_runs"] == beats
    assert {run["state"] for run in runs} <= ({"success", "cancelled"} if policy == "cancel_running" else {"success"})
    assert await miscounted(clockwork.db) == []


async def test_disabling_cancels_what_waits_if_asked_and_leaves_what_runs(clockwork: Clockwork) -> None:
    schedule = await clockwork.create(interval=10, run_at=NOON, max_concurrent=2)
    await clockwork.fire(NOON)
    worker = await hire(clockwork)
    assert len(await take(clockwork, worker)) == 1
    await clockwork.fire(NOON + 4 * BEAT)
    async with clockwork.db.transaction() as tx:
        kept = await disable_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid)
    assert (kept.schedule.enabled, kept.canceled) == (False, 0)
    async with clockwork.db.transaction() as tx:
        ended = await disable_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid, cancel_pending=True)
    assert ended.canceled == 4
    assert shown(await clockwork.runs(schedule.uid)) == [
        "pending", "cancelled", *["cancelled without a task"] * 3
    ]  # fmt: skip
    assert await miscounted(clockwork.db) == []

"""The scheduler's loop: it wakes when something is due, and when schedules change, by the database's clock."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from headrace import ids
from headrace.schedules.service import update_schedule
from tests.conftest import TestServer
from tests.schedules.conftest import Clockwork, miscounted

LONG = timedelta(minutes=5)


async def clock(clockwork: Clockwork) -> datetime:
    (row,) = await clockwork.db.fetch_alone("SELECT now() AS at")
    at: datetime = row["at"]
    return at


async def test_a_schedule_that_comes_up_while_it_sleeps_fires_on_time(clockwork: Clockwork) -> None:
    async with clockwork.scheduling(poll_every=LONG), clockwork.working():
        await asyncio.sleep(0.2)  # it is asleep: nothing is there to fire
        at = await clock(clockwork) + timedelta(milliseconds=600)
        schedule = await clockwork.create(run_at=at)
        (run,) = await clockwork.until_runs(schedule.uid, "success")  # its next look by itself would come later
    assert run["scheduled_at"] == at
    assert run["started_at"] >= at


# What a slow machine may take from the making of a schedule until its firing is prepared.
AHEAD = timedelta(seconds=3)
FREE = "SELECT FROM headrace.scheduled_tasks FOR NO KEY UPDATE SKIP LOCKED"


async def until_held(clockwork: Clockwork) -> None:
    """Until a scheduler has the one schedule in its hands."""
    async with asyncio.timeout(60):
        while await clockwork.db.fetch_alone(FREE):
            await asyncio.sleep(0.02)


async def test_what_is_fired_ahead_is_seen_when_its_time_has_come(clockwork: Clockwork) -> None:
    at = await clock(clockwork) + AHEAD
    schedule = await clockwork.create(run_at=at)
    ahead, other = clockwork.scheduler(), clockwork.scheduler()
    firing = asyncio.create_task(ahead.fire_on_time(at))
    await until_held(clockwork)
    assert await clockwork.runs(schedule.uid) == []
    assert (await other.fire_on_time(at)).schedules == 0  # it is in the first one's hands, and nobody waits for it
    assert (await firing).executions == 1
    assert await clock(clockwork) >= at
    (run,) = await clockwork.runs(schedule.uid)
    assert (run["scheduled_at"], run["state"]) == (at, "pending")


async def test_a_scheduler_that_dies_ahead_of_the_time_leaves_it_to_others(clockwork: Clockwork) -> None:
    at = await clock(clockwork) + AHEAD
    schedule = await clockwork.create(run_at=at)
    dying = asyncio.create_task(clockwork.scheduler().fire_on_time(at))
    await until_held(clockwork)
    dying.cancel()
    await asyncio.wait([dying])
    assert (await clockwork.scheduler().fire_on_time(at)).executions == 1
    assert len(await clockwork.runs(schedule.uid)) == 1


async def test_a_change_to_an_earlier_time_wakes_it(clockwork: Clockwork) -> None:
    schedule = await clockwork.create(run_at=await clock(clockwork) + timedelta(hours=1))
    async with clockwork.scheduling(poll_every=LONG):
        await asyncio.sleep(0.2)
        async with clockwork.db.transaction() as tx:
            changes = {"run_at": await clock(clockwork)}
            await update_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid, changes)
        await clockwork.until_runs(schedule.uid, "pending")


async def test_without_notifications_it_looks_now_and_then(clockwork: Clockwork) -> None:
    async with clockwork.scheduling(listen=False, poll_every=timedelta(milliseconds=100)):
        await asyncio.sleep(0.2)
        schedule = await clockwork.create(run_at=await clock(clockwork))
        await clockwork.until_runs(schedule.uid, "pending")


@pytest.mark.parametrize("off", [timedelta(days=-2), timedelta(days=2)], ids=["set back", "set forward"])
async def test_the_clock_of_its_machine_does_not_matter(
    clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch, off: timedelta
) -> None:
    """Its process lives two days before or after the database's time, and changes over while it runs."""
    schedule = await clockwork.create(interval=1)
    true_time, true_ns = time.time, time.time_ns

    async with clockwork.scheduling(poll_every=LONG), clockwork.working():
        await clockwork.until_done(schedule.uid, 1)
        monkeypatch.setattr(time, "time", lambda: true_time() + off.total_seconds())
        monkeypatch.setattr(time, "time_ns", lambda: true_ns() + round(off.total_seconds() * 1e9))
        assert abs(ids.time_of(ids.new("tsk")) - datetime.now(UTC)) < timedelta(days=3)
        runs = await clockwork.until_done(schedule.uid, 3)
    first = runs[0]["scheduled_at"]
    assert [run["scheduled_at"] - first for run in runs] == [timedelta(seconds=number) for number in range(3)]
    assert all(run["started_at"] - run["scheduled_at"] < timedelta(hours=1) for run in runs)
    assert await miscounted(clockwork.db) == []


async def test_a_database_that_is_away_delays_and_loses_nothing(clockwork: Clockwork, server: TestServer) -> None:
    schedule = await clockwork.create(interval=1)
    (row,) = await clockwork.db.fetch_alone("SELECT current_database() AS name")

    async with clockwork.scheduling(poll_every=LONG), clockwork.working():
        await clockwork.until_done(schedule.uid, 1)
        cut_off = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"
        await server.run(cut_off, row["name"])
        runs = await clockwork.until_done(schedule.uid, 3)
    times = [run["scheduled_at"] for run in runs]
    assert times == [times[0] + timedelta(seconds=number) for number in range(len(times))]

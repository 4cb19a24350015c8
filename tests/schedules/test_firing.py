"""Firing: each due time once, in batches, by the database's clock or a given one."""

import asyncio
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from headrace import ids
from headrace.schedules import due, firing
from headrace.schedules.due import MisfireConfig
from headrace.schedules.model import MisfirePolicy
from headrace.schedules.service import disable_schedule, run_schedule
from tests.conftest import TestServer
from tests.schedules.conftest import Clockwork, miscounted

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def test_a_due_schedule_fires_once_and_moves_on_from_its_due_time(clockwork: Clockwork) -> None:  # S-14
    schedule = await clockwork.create(interval=60, run_at=NOON, data={"pages": 3})
    fired = await clockwork.fire(NOON + timedelta(seconds=7))
    assert (fired.schedules, fired.executions, fired.skipped) == (1, 1, 0)
    assert (await clockwork.fire(NOON + timedelta(seconds=8))).schedules == 0
    (run,) = await clockwork.runs(schedule.uid)
    assert (run["scheduled_at"], run["state"], run["trigger_type"], run["retry_count"]) == (
        NOON,
        "pending",
        "scheduled",
        0,
    )
    assert (await clockwork.schedule(schedule.uid))["next_run"] == NOON + MINUTE
    task = await clockwork.row(run["task_id"])
    assert (task["schedule_uid"], task["payload"], task["max_attempts"]) == (schedule.uid, {"pages": 3}, 4)
    assert (task["timeout_seconds"], task["grace_seconds"], task["extension_seconds"]) == (3600, 30, None)


async def test_two_schedulers_share_what_is_due(clockwork: Clockwork) -> None:  # S-14
    uids = [(await clockwork.create(f"s{number}", interval=60, run_at=NOON)).uid for number in range(40)]
    fired = await asyncio.gather(*(clockwork.fire(NOON, batch=15) for _ in range(8)))
    fired += [await clockwork.fire(NOON)]
    assert sum(each.executions for each in fired) == 40
    assert [len(await clockwork.runs(uid)) for uid in uids] == [1] * 40


async def test_a_time_that_has_fired_does_not_fire_again_when_next_run_is_set_back(clockwork: Clockwork) -> None:
    schedule = await clockwork.create(interval=60, run_at=NOON)
    await clockwork.fire(NOON)
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET next_run = $1", NOON)
    assert (await clockwork.fire(NOON)).executions == 0
    assert len(await clockwork.runs(schedule.uid)) == 1
    assert (await clockwork.schedule(schedule.uid))["next_run"] == NOON + MINUTE


async def test_what_is_to_run_once_has_no_next_run_afterwards(clockwork: Clockwork) -> None:  # S-03
    schedule = await clockwork.create(run_at=NOON)
    await clockwork.fire(NOON + 10 * HOUR)
    assert (await clockwork.schedule(schedule.uid))["next_run"] is None
    assert [run["scheduled_at"] for run in await clockwork.runs(schedule.uid)] == [NOON]


@pytest.mark.parametrize(
    ("policy", "late", "fired", "skipped"),
    [
        # A little late: nobody was away, everything runs.
        (MisfirePolicy.LATEST, 59, 6, 0),
        (MisfirePolicy.NONE, 59, 6, 0),
        # Away for longer than a minute: due were 0, 10, … 100.
        (MisfirePolicy.LATEST, 105, 1, 10),
        (MisfirePolicy.ALL, 105, 5, 6),
        (MisfirePolicy.NONE, 105, 1, 10),  # the last one is five seconds late, which is no miss
    ],
)
async def test_missed_times_are_made_up_for_as_the_schedule_says(
    clockwork: Clockwork, policy: MisfirePolicy, late: int, fired: int, skipped: int
) -> None:
    schedule = await clockwork.create(interval=10, run_at=NOON, misfire_policy=policy)
    now = NOON + timedelta(seconds=late)
    done = await clockwork.fire(now, misfires=MisfireConfig(after=MINUTE, most=5))
    assert (done.executions, done.skipped) == (fired, skipped)
    row = await clockwork.schedule(schedule.uid)
    assert (row["skipped_runs"], row["next_run"]) == (skipped, NOON + timedelta(seconds=late // 10 * 10 + 10))
    last = (await clockwork.runs(schedule.uid))[-1]
    assert last["scheduled_at"] == NOON + timedelta(seconds=late // 10 * 10)


async def test_none_does_not_run_what_was_missed(clockwork: Clockwork) -> None:
    await clockwork.create("cron", cron="0 * * * *", misfire_policy=MisfirePolicy.NONE)
    await clockwork.create("once", run_at=NOON, misfire_policy=MisfirePolicy.NONE)
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET next_run = $1", NOON)
    done = await clockwork.fire(NOON + 5 * HOUR + 2 * MINUTE)
    assert (done.executions, done.skipped) == (0, 7)


async def test_years_of_missed_minutes_are_caught_up_with_in_passes(clockwork: Clockwork) -> None:
    schedule = await clockwork.create(cron="* * * * *")
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET next_run = $1", NOON)
    now = NOON + timedelta(days=20, seconds=5)
    passes = 0
    while (await clockwork.fire(now)).schedules:
        passes += 1
    row = await clockwork.schedule(schedule.uid)
    assert (row["skipped_runs"], row["next_run"]) == (20 * 24 * 60, NOON + timedelta(days=20, minutes=1))
    assert [run["scheduled_at"] for run in await clockwork.runs(schedule.uid)] == [NOON + timedelta(days=20)]
    assert passes == 3


async def test_beyond_max_concurrent_runs_wait_without_a_task(clockwork: Clockwork) -> None:  # S-07
    schedule = await clockwork.create(interval=10, run_at=NOON, max_concurrent=2)
    await clockwork.fire(NOON + timedelta(seconds=45))
    runs = await clockwork.runs(schedule.uid)
    assert [run["task_id"] is not None for run in runs] == [True, True, False, False, False]
    assert {run["state"] for run in runs} == {"pending"}
    async with clockwork.db.transaction() as tx:
        by_hand = await run_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid)
    assert by_hand.task_id is None
    async with clockwork.working():
        await clockwork.until_runs(schedule.uid, *["success"] * 6)
    assert await miscounted(clockwork.db) == []


async def test_a_disabled_schedule_does_not_fire(clockwork: Clockwork) -> None:  # S-04
    await clockwork.create(interval=10, enabled=False)
    await clockwork.create("once", run_at=NOON, enabled=False)
    assert (await clockwork.fire(NOON + 10_000 * HOUR)).schedules == 0


async def test_a_schedule_whose_type_or_zone_is_gone_can_be_stopped(clockwork: Clockwork) -> None:  # S-04
    schedule = await clockwork.create(cron="* * * * *")
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET type = 'gone', timezone = 'Nowhere/Land'")
    async with clockwork.db.transaction() as tx:
        stopped = (await disable_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid)).schedule
    assert (stopped.enabled, stopped.next_run) == (False, None)


async def test_a_run_that_cannot_be_submitted_has_failed_and_the_others_have_not(clockwork: Clockwork) -> None:
    bad = await clockwork.create("bad", interval=60, run_at=NOON)
    good = await clockwork.create("good", interval=60, run_at=NOON)
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET type = 'gone' WHERE uid = $1", bad.uid)
    assert (await clockwork.fire(NOON)).executions == 2
    (failed,) = await clockwork.runs(bad.uid)
    assert failed["state"] == "failure"
    assert "gone" in failed["error_message"]
    assert [run["state"] for run in await clockwork.runs(good.uid)] == ["pending"]
    assert await miscounted(clockwork.db) == []


async def test_none_of_several_runs_that_cannot_be_submitted_waits_for_ever(clockwork: Clockwork) -> None:
    schedule = await clockwork.create(interval=10, run_at=NOON)
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET type = 'gone'")
    await clockwork.fire(NOON + timedelta(seconds=25))
    assert [run["state"] for run in await clockwork.runs(schedule.uid)] == ["failure"] * 3
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET type = 'job'")
    async with clockwork.working():
        await clockwork.fire(NOON + timedelta(seconds=30))
        await clockwork.until_runs(schedule.uid, *["failure"] * 3, "success")
    assert await miscounted(clockwork.db) == []


async def test_a_slot_that_nobody_filled_is_filled_at_the_next_time(clockwork: Clockwork) -> None:  # S-07
    schedule = await clockwork.create(interval=10, run_at=NOON)
    await clockwork.fire(NOON + timedelta(seconds=25))
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET max_concurrent = 3")
    await clockwork.fire(NOON + timedelta(seconds=30))
    assert [run["task_id"] is not None for run in await clockwork.runs(schedule.uid)] == [True, True, True, False]


async def test_catching_up_with_very_much_is_not_one_transaction(
    clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "_MAX_RUNS", 25)
    uids = [
        (await clockwork.create(f"s{number}", interval=10, run_at=NOON, misfire_policy=MisfirePolicy.ALL)).uid
        for number in range(5)
    ]
    passes = []
    while (fired := await clockwork.fire(NOON + timedelta(seconds=95))).schedules:
        passes.append(fired.executions)
    assert passes == [20, 20, 10]
    assert [len(await clockwork.runs(uid)) for uid in uids] == [10] * 5


def test_more_may_be_caught_up_with_than_is_looked_at_in_one_pass() -> None:
    now = NOON + timedelta(minutes=10_500, seconds=5)
    looked = due.decide(due.Rhythm("* * * * *"), NOON, now, MisfirePolicy.ALL, MisfireConfig(most=10_100))
    assert (len(looked.fire), looked.skipped, looked.next_run) == (0, 1, NOON + MINUTE)
    looked = due.decide(
        due.Rhythm("* * * * *"), NOON + 500 * MINUTE, now, MisfirePolicy.ALL, MisfireConfig(most=10_100)
    )
    assert (len(looked.fire), looked.skipped, looked.next_run) == (10_001, 0, NOON + 10_501 * MINUTE)


async def test_more_skipped_runs_than_can_be_counted_hold_up_nothing(clockwork: Clockwork) -> None:
    schedule = await clockwork.create(interval=1, run_at=NOON)
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET skipped_runs = 2147483000")
    await clockwork.fire(NOON + HOUR)
    row = await clockwork.schedule(schedule.uid)
    assert (row["skipped_runs"], row["next_run"]) == (2**31 - 1, NOON + HOUR + timedelta(seconds=1))


async def test_a_schedule_that_breaks_the_batch_is_set_aside(clockwork: Clockwork) -> None:
    bad = await clockwork.create("bad", interval=60, run_at=NOON)
    good = [await clockwork.create(f"good {number}", interval=60, run_at=NOON) for number in range(3)]
    # What the insert of its run refuses: something no code of ours does.
    await clockwork.db.fetch_alone(
        "INSERT INTO headrace.task_executions (task_uid, task_name, task_type, execution_uid, scheduled_at, state, "
        "trigger_type, retry_count) VALUES ($1, 'x', 'job', $3, $2, 'pending', 'scheduled', 0)",
        bad.uid,
        NOON + 10 * MINUTE,
        ids.new("exe"),
    )
    await clockwork.db.fetch_alone(
        "UPDATE headrace.scheduled_tasks SET timezone = 'Nowhere/Land', cron_expr = '* * * * *', \"interval\" = NULL "
        "WHERE uid = $1",
        bad.uid,
    )
    scheduler = clockwork.scheduler()
    await scheduler.run_once(now=NOON)
    for each in good:
        assert len(await clockwork.runs(each.uid)) == 1
    fired = await scheduler.run_once(now=NOON)
    assert fired.schedules == 0
    pause, _ = await scheduler._pause(fired)
    assert pause == 0.05  # the good ones are due again
    await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET enabled = false WHERE uid <> $1", bad.uid)
    assert (await scheduler._pause(fired))[0] == 5  # nobody looks for what was set aside


async def test_firing_costs_the_same_whatever_the_statistics_say(clockwork: Clockwork, server: TestServer) -> None:
    """Plans that were made when there was nothing must not read everything once there is."""
    count = 60
    for n in range(count):
        await clockwork.create(f"s{n}", interval=60, run_at=NOON, max_concurrent=9)
    name = urlsplit(clockwork.db.config.url).path.strip("/")
    for table in ("tasks", "task_executions"):
        await server.run(f"VACUUM ANALYZE headrace.{table}", database=name)
    for minute in range(3):
        async with clockwork.db.transaction() as tx:
            at = NOON + timedelta(minutes=minute)
            fired = await firing.fire_due(tx, clockwork.submitter, MisfireConfig(), now=at, limit=1000)
            read = await tx.fetch(
                "SELECT relname, seq_scan, idx_tup_fetch FROM pg_stat_xact_user_tables "
                "WHERE relname IN ('tasks', 'task_executions')"
            )
        assert fired.executions == count
        assert {row["relname"]: row["seq_scan"] for row in read} == {"tasks": 0, "task_executions": 0}
        assert all(row["idx_tup_fetch"] <= 10 * count for row in read)

"""Runs move with their tasks: starts, ends, retries, progress, counts."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace.database import Row
from headrace.errors import Conflict
from headrace.schedules.executions import cancel_execution
from headrace.schedules.service import run_schedule, update_schedule
from headrace.schedules.truncation import MAX_RESULT_BYTES, MAX_STACK_BYTES
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import ExtensionRefused, Fatal, Snooze
from headrace.tasks.execution import Backoff
from headrace.tasks.model import Claimed
from headrace.tasks.reaping import Reaper
from headrace.tasks.service import retry_task
from headrace.tasks.worker import feeding, store
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.endings import Writer, succeeded
from headrace.tasks.worker.reporting import LeaseReporter
from tests.schedules.conftest import Clockwork, miscounted
from tests.tasks.people import WAITING_SESSIONS, hire, take, trail

AT_ONCE = Backoff(first=timedelta(0))


async def by_hand(clockwork: Clockwork, uid: str) -> str:
    async with clockwork.db.transaction() as tx:
        return (await run_schedule(tx, clockwork.tasks, clockwork.caller, uid)).execution_uid


async def test_a_run_by_hand_succeeds_and_is_counted(clockwork: Clockwork) -> None:  # S-04 S-09
    schedule = await clockwork.create(data={"pages": 3})
    async with clockwork.working() as worker:
        await by_hand(clockwork, schedule.uid)
        (run,) = await clockwork.until_runs(schedule.uid, "success")
    assert (run["result"], run["progress"], run["run_by"]) == ('{"pages":3}', 100, worker.identity.id)
    assert (run["trigger_type"], run["trigger_by"]) == ("manual", clockwork.caller.user_id)
    assert run["deadline_at"] == run["started_at"] + timedelta(seconds=3600)
    row = await clockwork.schedule(schedule.uid)
    assert (row["total_executions"], row["success_executions"], row["consecutive_failures"]) == (1, 1, 0)
    assert row["next_run"] == schedule.next_run
    assert await miscounted(clockwork.db) == []


async def test_each_attempt_is_a_row_of_its_own(clockwork: Clockwork) -> None:  # S-06
    @clockwork.registry.task("flaky", backoff=AT_ONCE)
    async def flaky(context: TaskContext, _: Any) -> str:
        await context.progress(30)
        if context.attempt < 3:
            raise ValueError(f"attempt {context.attempt}")
        return "at last"

    schedule = await clockwork.create(task_type="flaky", max_retries=5)
    async with clockwork.working():
        await by_hand(clockwork, schedule.uid)
        runs = await clockwork.until_runs(schedule.uid, "failure", "failure", "success")
    assert [run["retry_count"] for run in runs] == [0, 1, 2]
    assert [run["progress"] for run in runs] == [30, 30, 100]
    assert len({run["scheduled_at"] for run in runs}) == len({run["task_id"] for run in runs}) == 1
    assert runs[0]["error_message"] == "ValueError: attempt 1"
    assert runs[0]["error_stack"].startswith("Traceback")
    row = await clockwork.schedule(schedule.uid)
    assert (row["total_executions"], row["success_executions"], row["failure_executions"]) == (1, 1, 0)
    assert (row["retried_attempts"], row["consecutive_failures"]) == (2, 0)
    assert row["last_failure_error"] == "ValueError: attempt 2"
    assert await miscounted(clockwork.db) == []


async def test_the_last_failure_ends_the_chain(clockwork: Clockwork) -> None:  # S-06
    @clockwork.registry.task("bad", backoff=AT_ONCE)
    async def bad(_: TaskContext, __: Any) -> None:
        raise ValueError("always")

    schedule = await clockwork.create(task_type="bad", max_retries=1)
    async with clockwork.working():
        await by_hand(clockwork, schedule.uid)
        await clockwork.until_runs(schedule.uid, "failure", "failure")
    row = await clockwork.schedule(schedule.uid)
    assert (row["total_executions"], row["failure_executions"], row["consecutive_failures"]) == (1, 1, 1)
    assert await miscounted(clockwork.db) == []


async def test_progress_shows_while_it_runs_and_cancelling_ends_it(clockwork: Clockwork) -> None:
    reached = asyncio.Event()

    @clockwork.registry.task("slow")
    async def slow(context: TaskContext, _: Any) -> None:
        await context.progress(40)
        reached.set()
        await asyncio.Event().wait()

    schedule = await clockwork.create(task_type="slow")
    async with clockwork.working():
        running = await by_hand(clockwork, schedule.uid)
        async with asyncio.timeout(60):
            await reached.wait()
        (run,) = await clockwork.runs(schedule.uid)
        assert (run["state"], run["progress"]) == ("running", 40)
        waiting = await by_hand(clockwork, schedule.uid)
        async with clockwork.db.transaction() as tx:
            held = await cancel_execution(tx, clockwork.tasks, clockwork.caller, waiting)
        assert (held.state, held.task_id) == ("cancelled", None)
        async with clockwork.db.transaction() as tx:
            await cancel_execution(tx, clockwork.tasks, clockwork.caller, running)
        await clockwork.until_runs(schedule.uid, "cancelled", "cancelled")
        with pytest.raises(Conflict):
            async with clockwork.db.transaction() as tx:
                await retry_task(tx, clockwork.tasks, clockwork.caller, run["task_id"])
    row = await clockwork.schedule(schedule.uid)
    assert (row["total_executions"], row["failure_executions"]) == (2, 0)
    assert await miscounted(clockwork.db) == []


async def test_a_run_that_waits_for_a_worker_is_cancelled_through_running(clockwork: Clockwork) -> None:  # S-10
    schedule = await clockwork.create()
    waiting = await by_hand(clockwork, schedule.uid)
    async with clockwork.db.transaction() as tx:
        await cancel_execution(tx, clockwork.tasks, clockwork.caller, waiting)
    (run,) = await clockwork.runs(schedule.uid)
    assert (run["state"], run["run_by"]) == ("cancelled", "nobody")
    assert await miscounted(clockwork.db) == []


async def test_a_run_whose_worker_died_is_interrupted_and_tried_again(clockwork: Clockwork) -> None:  # S-11
    schedule = await clockwork.create(max_retries=1)
    await by_hand(clockwork, schedule.uid)
    reaper = Reaper(clockwork.db, clockwork.registry, clockwork.followers)
    for _ in range(2):
        worker = await hire(clockwork)
        assert len(await take(clockwork, worker)) == 1
        await clockwork.db.fetch_alone(
            "UPDATE headrace.workers SET heartbeat_at = now() - interval '1 hour' WHERE number = $1", worker.number
        )
        await reaper.run_once()
    runs = await clockwork.runs(schedule.uid)
    assert [(run["state"], run["retry_count"]) for run in runs] == [("interrupted", 0), ("interrupted", 1)]
    row = await clockwork.schedule(schedule.uid)
    assert (row["total_executions"], row["retried_attempts"], row["failure_executions"]) == (1, 1, 0)
    assert await miscounted(clockwork.db) == []


async def test_a_run_that_is_reaped_after_its_deadline_has_timed_out(clockwork: Clockwork) -> None:  # S-05
    schedule = await clockwork.create(max_retries=0, max_duration_seconds=60)
    await by_hand(clockwork, schedule.uid)
    worker = await hire(clockwork)
    (claimed,) = await take(clockwork, worker)
    await clockwork.db.fetch_alone(
        "UPDATE headrace.task_queue SET claimed_at = now() - interval '2 minutes' WHERE seq = $1", claimed.seq
    )
    await clockwork.db.fetch_alone("UPDATE headrace.workers SET heartbeat_at = now() - interval '1 minute'")
    await Reaper(clockwork.db, clockwork.registry, clockwork.followers).run_once()
    (run,) = await clockwork.runs(schedule.uid)
    assert run["state"] == "timeout"
    assert (await clockwork.schedule(schedule.uid))["failure_executions"] == 1
    assert await miscounted(clockwork.db) == []


async def test_the_time_in_a_workers_hand_is_not_the_runs(
    clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch
) -> None:  # S-05
    claimed_of = feeding._claimed

    def claimed_long_ago(row: Row) -> Claimed:
        claimed = claimed_of(row)
        return replace(claimed, claimed_at=claimed.claimed_at - timedelta(minutes=1), received=claimed.received - 60)

    monkeypatch.setattr(feeding, "_claimed", claimed_long_ago)
    schedule = await clockwork.create(max_duration_seconds=30, timeout_grace_period=5, max_retries=0)
    async with clockwork.working():
        await by_hand(clockwork, schedule.uid)
        (run,) = await clockwork.until_runs(schedule.uid, "success")
    assert run["duration_ms"] < 30_000


async def test_a_run_is_judged_by_the_grace_it_began_with(clockwork: Clockwork) -> None:  # S-05
    schedule = await clockwork.create(max_retries=0, max_duration_seconds=60, timeout_grace_period=50)
    await by_hand(clockwork, schedule.uid)
    worker = await hire(clockwork)
    (claimed,) = await take(clockwork, worker)
    async with clockwork.db.transaction() as tx:
        await update_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid, {"timeout_grace_period": 0})
    claimed.begun_at = claimed.claimed_at - timedelta(seconds=80)  # 20 s of its grace have passed
    writer = Writer(clockwork.db, clockwork.registry, clockwork.followers)
    await writer.write(worker, [succeeded(claimed, None, limit=1000)])
    (run,) = await clockwork.runs(schedule.uid)
    assert run["state"] == "success"


async def test_a_deadline_moves_with_an_extension(clockwork: Clockwork) -> None:
    @clockwork.registry.task("longer")
    async def longer(context: TaskContext, _: Any) -> None:
        await context.extend(20)

    schedule = await clockwork.create(
        task_type="longer", max_duration_seconds=60, timeout_grace_period=5, max_extension_seconds=30
    )
    async with clockwork.working():
        await by_hand(clockwork, schedule.uid)
        (run,) = await clockwork.until_runs(schedule.uid, "success")
    assert run["deadline_at"] - run["started_at"] == timedelta(seconds=80)


@pytest.mark.parametrize("begun", [True, False])
async def test_extensions_that_are_asked_for_at_once_add_up(clockwork: Clockwork, begun: bool) -> None:
    schedule = await clockwork.create(max_duration_seconds=60, max_extension_seconds=40)
    await by_hand(clockwork, schedule.uid)
    worker = await hire(clockwork)
    (claimed,) = await take(clockwork, worker)
    writer = Writer(clockwork.db, clockwork.registry, clockwork.followers)
    reporter = LeaseReporter(clockwork.db, worker, clockwork.registry, clockwork.followers, writer, WorkerConfig())
    if begun:
        await reporter.start([claimed])
    async with clockwork.db.transaction() as tx:  # both have a connection, and wait for the same claim
        assert await store.hold(tx, worker, claimed)
        asked = [asyncio.create_task(reporter.extend(claimed, seconds)) for seconds in (10, 15)]
        async with asyncio.timeout(60):
            while len(await clockwork.db.fetch_alone(WAITING_SESSIONS)) < 2:
                await asyncio.sleep(0.01)
        with pytest.raises(ExtensionRefused, match="15 s more"):
            await reporter.extend(claimed, 16)
    await asyncio.gather(*asked)
    (run,) = await clockwork.runs(schedule.uid)
    assert run["deadline_at"] - run["started_at"] == timedelta(seconds=85)
    assert (claimed.timeout_seconds, claimed.extension_seconds) == (85, 15)


async def test_snoozed_and_fatal(clockwork: Clockwork) -> None:
    @clockwork.registry.task("moody")
    async def moody(context: TaskContext, _: Any) -> None:
        if context.attempt == 1:
            raise Snooze(timedelta(0))
        raise Fatal("no use")

    schedule = await clockwork.create(task_type="moody")
    async with clockwork.working():
        await by_hand(clockwork, schedule.uid)
        runs = await clockwork.until_runs(schedule.uid, "interrupted", "failure")
    assert runs[1]["error_message"] == "no use"
    assert await miscounted(clockwork.db) == []


async def test_long_results_and_stacks_are_cut_and_marked(clockwork: Clockwork) -> None:  # S-12
    @clockwork.registry.task("long")
    async def long(_: TaskContext, payload: Any) -> str:
        if payload["fail"]:
            raise ValueError("ü" * 20_000)
        return "ü" * 50_000

    wordy = await clockwork.create("wordy", "long", data={"fail": False})
    wrong = await clockwork.create("wrong", "long", data={"fail": True}, max_retries=0)
    async with clockwork.working():
        await by_hand(clockwork, wordy.uid)
        await by_hand(clockwork, wrong.uid)
        (cut,) = await clockwork.until_runs(wordy.uid, "success")
        (stack,) = await clockwork.until_runs(wrong.uid, "failure")
    assert cut["result"].endswith("ü…[cut: 100,002 bytes]")
    assert MAX_RESULT_BYTES - 1 <= len(cut["result"].encode()) <= MAX_RESULT_BYTES
    assert len(stack["error_stack"].encode()) <= MAX_STACK_BYTES
    assert stack["error_stack"].startswith("[cut: ")
    assert stack["error_stack"].endswith("ü")


async def test_a_stack_of_exactly_10_kb_is_kept_whole(clockwork: Clockwork) -> None:  # S-12
    @clockwork.registry.task("exact")
    async def exact(_: TaskContext, length: int) -> None:
        raise ValueError("a" * length)

    # What Python writes around the message depends on where this file lies.
    short = await clockwork.create("short", "exact", data=1, max_retries=0)
    async with clockwork.working():
        await by_hand(clockwork, short.uid)
        (first,) = await clockwork.until_runs(short.uid, "failure")
        room = MAX_STACK_BYTES - len(first["error_stack"].encode())
        whole = await clockwork.create("whole", "exact", data=1 + room, max_retries=0)
        await by_hand(clockwork, whole.uid)
        (kept,) = await clockwork.until_runs(whole.uid, "failure")
    assert len(kept["error_stack"].encode()) == MAX_STACK_BYTES
    assert kept["error_stack"].startswith("Traceback")


async def test_the_trail_says_where_a_run_stands(clockwork: Clockwork) -> None:
    schedule = await clockwork.create()
    uid = await by_hand(clockwork, schedule.uid)
    paths = [row["space_path"] for row in await trail(clockwork.db) if row["resource"]["identifier"] == uid]
    assert paths == [f"{schedule.uid}/{uid}"]

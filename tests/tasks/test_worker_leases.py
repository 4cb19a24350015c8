"""The lease of a worker: kept while its handlers are at work, and nothing is changed by one that has lost it."""

import asyncio
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.tasks.context import Facts, TaskContext
from headrace.tasks.errors import LeaseLost
from headrace.tasks.model import Claimed
from headrace.tasks.reaping import Reaper
from headrace.tasks.registry import Registry
from headrace.tasks.worker import store
from headrace.tasks.worker.runs import Run, StopReason
from tests.tasks.conftest import Bench
from tests.tasks.people import hire, take


async def test_a_worker_that_lost_its_lease_can_be_woken_again(bench: Bench) -> None:
    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    async def sleeps() -> bool:
        rows = await bench.db.fetch_alone("SELECT asleep FROM headrace.workers ORDER BY number DESC LIMIT 1")
        return bool(rows) and rows[0]["asleep"]

    async with bench.working(poll_every=timedelta(minutes=10)) as worker, asyncio.timeout(60):
        while not await sleeps():
            await asyncio.sleep(0.01)
        first = worker.identity
        await bench.db.fetch_alone("UPDATE headrace.workers SET heartbeat_at = now() - interval '1 hour'")
        while worker.identity is first or not await sleeps():
            await asyncio.sleep(0.01)
        await bench.over(await bench.submit("work"))


async def test_a_late_worker_cannot_finish_a_reclaimed_task(bench: Bench) -> None:  # D-08, S-11
    """Its heart is stopped by hand; another worker gives it up and runs the task; then it wakes and finishes."""
    begun, wake = asyncio.Event(), asyncio.Event()
    refused: list[type[BaseException]] = []

    @bench.registry.task("contested", max_attempts=5, events=False)
    async def contested(context: TaskContext, payload: Any) -> Any:
        if context.attempt > 1:
            return "the second"
        begun.set()
        await asyncio.shield(wake.wait())
        try:
            await context.progress(99)
        except LeaseLost as exc:
            refused.append(type(exc))
            raise
        return "the first"

    task = await bench.submit("contested")
    lease = timedelta(milliseconds=600)
    async with bench.working(
        lease=lease, concurrency=1
    ) as late:  # its hand is full: it asks for nothing, learns nothing
        await begun.wait()
        await late._heartbeat.stop()
        late._heartbeat.alive_until = time.monotonic() + 3600  # a paused process does not notice that time goes by
        async with bench.working(lease=lease):
            (row,) = await bench.over(task)
            wake.set()
            await asyncio.sleep(0.3)
            row = await bench.row(task)
    assert (row["result"], row["attempt"], row["retries"]) == ("the second", 2, 1)
    assert refused == [LeaseLost]
    assert await bench.logged(task) == [(1, "INTERRUPTED"), (2, "SUCCEEDED")]


async def test_a_handler_that_hogs_the_loop_does_not_lose_its_lease(bench: Bench) -> None:
    @bench.registry.task("hog", max_attempts=1)
    async def hog(context: TaskContext, payload: Any) -> str:
        until = time.monotonic() + 1
        while time.monotonic() < until:
            pass
        return "done"

    task = await bench.submit("hog")
    async with bench.working(lease=timedelta(milliseconds=600)):
        (row,) = await bench.over(task)
    assert (row["status"], row["attempt"]) == ("SUCCEEDED", 1)


async def test_a_worker_whose_loop_dies_stops_its_heart(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    @bench.registry.task("any")
    async def any_(context: TaskContext, payload: Any) -> None: ...

    worker = bench.worker()

    async def die() -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(worker._feeder, "run", die)
    with pytest.raises(ExceptionGroup):
        await worker.run(asyncio.Event())
    assert not worker._heartbeat._thread.is_alive()


async def test_a_step_that_a_dead_worker_was_in_is_ended_with_its_attempt(bench: Bench) -> None:
    @bench.registry.task("build", max_attempts=3)
    async def build(context: TaskContext, payload: Any) -> None: ...

    task = await bench.submit("build")
    worker = await hire(bench, concurrency=1, lease=timedelta(milliseconds=1))
    (claimed,) = await take(bench, worker, most=1)
    async with bench.db.transaction() as tx:
        await tx.execute(store.BEGIN_STEP, task, "fetch", "RUNNING", claimed.attempt, None, None)
    await asyncio.sleep(0.01)
    await Reaper(bench.db, bench.registry, bench.followers).run_once()
    (step,) = await bench.db.fetch_alone("SELECT * FROM headrace.task_steps WHERE task_id = $1", task)
    assert (step["status"], step["ended_at"] is not None) == ("FAILED", True)
    assert await bench.logged(task) == [(1, "INTERRUPTED")]


async def test_work_stops_before_the_lease_ends_though_the_database_does_not_answer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that is cut off: writing starts hung, and its work went on for 20 s on two hosts at once."""
    hanging, begun = asyncio.Event(), asyncio.Event()
    stopped_at: list[float] = []

    @bench.registry.task("long", max_attempts=1, grace=timedelta(hours=1))
    async def long(context: TaskContext, payload: Any) -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            stopped_at.append(time.monotonic())
            raise

    async def hang(runs: object) -> None:
        hanging.set()
        await asyncio.sleep(600)

    lease = timedelta(seconds=10)
    await bench.submit("long")
    async with bench.working(lease=lease) as worker, asyncio.timeout(60):
        monkeypatch.setattr(worker._starts, "_write", hang)
        await begun.wait()
        await hanging.wait()
        await worker._heartbeat.stop()
        heartbeat, entered = worker._heartbeat, asyncio.Event()
        monkeypatch.setattr(worker, "_enter", entered.wait)  # the database does not let it in again
        heartbeat.alive_until = time.monotonic() + lease.total_seconds() / 5 + 0.5
        while not stopped_at:
            await asyncio.sleep(0.01)
        assert worker.figures.leases_lost == 1
        while worker.running:
            await asyncio.sleep(0.01)
        entered.set()


async def test_a_child_is_killed_within_what_is_left_of_a_lost_lease() -> None:
    """Its own grace may be longer than that, and another worker runs the task meanwhile."""
    registry = Registry()

    @registry.task("long", grace=timedelta(hours=1))
    async def long(context: TaskContext, payload: Any) -> None: ...

    task_type = registry.get("long")
    for reason in (None, StopReason.TIMEOUT):
        run = Run(
            cast("Claimed", SimpleNamespace(grace_seconds=None)), task_type, cast("Facts", None), asyncio.Event(), 0
        )
        assert run.grace == timedelta(hours=1)
        if reason is not None:
            run.ask_to_stop(reason)
        run.lose_lease(timedelta(seconds=3))
        assert (run.grace, run.reason, run.stop.is_set()) == (timedelta(seconds=3), StopReason.LEASE_LOST, True)

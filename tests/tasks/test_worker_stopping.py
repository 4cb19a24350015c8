"""What is stopped: tasks past their time, tasks that are canceled, and workers."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from headrace.tasks.context import TaskContext
from tests.tasks.conftest import AT_ONCE, Bench


async def test_a_task_past_its_time_is_stopped_and_says_so(bench: Bench) -> None:  # S-05
    @bench.registry.task("slow", timeout=timedelta(seconds=1), max_attempts=1)
    async def slow(context: TaskContext, payload: Any) -> None:
        await asyncio.sleep(60)

    task = await bench.submit("slow")
    async with bench.working():
        (row,) = await bench.over(task)
    assert (row["status"], row["error_code"]) == ("FAILED", "timeout")


async def test_a_handler_that_will_not_stop_is_given_up_and_its_place_is_filled(bench: Bench) -> None:
    release = asyncio.Event()

    @bench.registry.task("stubborn", timeout=timedelta(seconds=1), grace=timedelta(milliseconds=100), max_attempts=1)
    async def stubborn(context: TaskContext, payload: Any) -> str:
        while not release.is_set():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue
        return "too late"

    @bench.registry.task("next")
    async def following(context: TaskContext, payload: Any) -> None: ...

    stuck = await bench.submit("stubborn")
    async with asyncio.timeout(60), bench.working(concurrency=1) as worker:
        (row,) = await bench.over(stuck)
        assert (row["status"], row["error_code"]) == ("FAILED", "timeout")
        await bench.over(await bench.submit("next"))
    (left,) = worker.abandoned  # the worker has ended all the same
    release.set()
    left.cancel("let the stubborn one see the event")
    await asyncio.wait([left], timeout=60)
    assert left.done()
    assert not worker.abandoned
    assert (await bench.row(stuck))["status"] == "FAILED"


async def test_a_worker_that_falls_does_not_wait_for_a_handler_that_will_not_stop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, started = asyncio.Event(), asyncio.Event()

    @bench.registry.task("stubborn", grace=timedelta(milliseconds=100))
    async def stubborn(context: TaskContext, payload: Any) -> None:
        started.set()
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def fall(_: object) -> None:
        await started.wait()
        raise RuntimeError("a loop died")

    worker = bench.worker()
    monkeypatch.setattr(worker._ends, "run", lambda: fall(worker))
    await bench.submit("stubborn")
    async with asyncio.timeout(60):
        with pytest.raises(ExceptionGroup):
            await worker.run(asyncio.Event())
    (left,) = worker.abandoned
    release.set()
    left.cancel()
    await asyncio.wait([left], timeout=60)
    assert left.done()  # and it took nothing more


def register_long(bench: Bench, **rules: Any) -> asyncio.Event:
    """A type whose handler runs until it is stopped; the event tells that one has begun."""
    started = asyncio.Event()

    @bench.registry.task("long", **rules)
    async def long(context: TaskContext, payload: Any) -> None:
        started.set()
        await asyncio.sleep(60)

    return started


async def test_a_running_task_that_is_canceled_stops_and_ends_canceled(bench: Bench) -> None:
    started = register_long(bench)
    task = await bench.submit("long")
    async with bench.working():
        await started.wait()
        await bench.cancel_running(task)
        (row,) = await bench.over(task)
    assert row["status"] == "CANCELED"
    assert await bench.logged(task) == [(1, "CANCELED")]


async def test_cancel_is_found_by_polling_alone(bench: Bench) -> None:
    started = register_long(bench)
    task = await bench.submit("long")
    async with bench.working(listen=False):
        await started.wait()
        async with bench.db.transaction() as tx:
            await tx.execute("UPDATE headrace.task_queue SET cancel_requested = true")
        (row,) = await bench.over(task)
    assert row["status"] == "CANCELED"


async def test_a_failure_after_a_cancellation_is_not_retried(bench: Bench) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    @bench.registry.task("brave", max_attempts=5, backoff=AT_ONCE)
    async def brave(context: TaskContext, payload: Any) -> None:
        started.set()
        await go_on.wait()
        raise RuntimeError("failed by myself")

    task = await bench.submit("brave")
    async with bench.working(listen=False, poll_every=timedelta(minutes=10)):
        await started.wait()
        async with bench.db.transaction() as tx:
            await tx.execute("UPDATE headrace.task_queue SET cancel_requested = true")
        go_on.set()
        (row,) = await bench.over(task)
    assert (row["status"], row["attempt"]) == ("CANCELED", 1)


async def test_a_stopped_worker_gives_back_what_it_has_not_started_and_spends_no_attempt(bench: Bench) -> None:
    started = register_long(bench, max_attempts=2, grace=timedelta(milliseconds=100))
    tasks = [await bench.submit("long") for _ in range(5)]
    async with bench.working(concurrency=2, shutdown_timeout=timedelta(milliseconds=100)):
        await started.wait()
    rows = [await bench.row(task) for task in tasks]
    assert {row["status"] for row in rows} == {"QUEUED"}
    assert {row["retries"] for row in rows} == {0}
    async with bench.db.transaction() as tx:
        assert await tx.fetchval("SELECT count(*) FROM headrace.task_queue WHERE worker IS NULL") == 5
        assert await tx.fetchval("SELECT ending FROM headrace.workers") == "STOPPED"

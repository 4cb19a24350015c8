"""Handlers in threads: what they give back, and what becomes of those that do not stop."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.tasks.context import BlockingTaskContext
from headrace.tasks.errors import Fatal, LeaseLost, Snooze, TaskCanceled
from headrace.tasks.isolation.errors import HandlerFailed
from tests.tasks.isolation.stand import ThreadStand, eventually

word: ContextVar[str] = ContextVar("word", default="")


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[ThreadStand]:
    before = threading.active_count()
    stand = ThreadStand(2, tmp_path)
    yield stand
    stand.pool.close()
    assert await eventually(lambda: threading.active_count() <= before)


async def test_a_thread_gives_back_what_the_handler_does(stand: ThreadStand) -> None:
    def handler(context: BlockingTaskContext, payload: Any) -> Any:
        return payload, threading.current_thread().name, word.get()

    word.set("carried over")
    payload, name, carried = await stand.run(handler, {"a": 1})
    assert payload == {"a": 1}
    assert name.startswith("headrace-task-")
    assert carried == "carried over"


@pytest.mark.parametrize(
    "raised", [ValueError("x"), Fatal("x"), Snooze(timedelta(seconds=5)), LeaseLost(), TaskCanceled()]
)
async def test_an_exception_comes_back_as_it_is(stand: ThreadStand, raised: BaseException) -> None:
    def handler(context: BlockingTaskContext, payload: Any) -> None:
        raise raised

    with pytest.raises(type(raised)) as caught:
        await stand.run(handler)
    assert caught.value is raised


@pytest.mark.parametrize("raised", [SystemExit(2), KeyboardInterrupt(), StopIteration(), asyncio.CancelledError()])
async def test_what_means_something_else_to_the_loop_comes_back_as_a_failure(
    stand: ThreadStand, raised: BaseException
) -> None:
    def handler(context: BlockingTaskContext, payload: Any) -> None:
        raise raised

    with pytest.raises(HandlerFailed, match=type(raised).__name__):
        await stand.run(handler)


async def test_reports_are_made_on_the_loop(stand: ThreadStand) -> None:
    def handler(context: BlockingTaskContext, payload: Any) -> None:
        context.progress(50)
        with context.step("count") as step:
            step.detail = 7
        context.log("done")

    await stand.run(handler)
    assert stand.recorder.said == [
        ("progress", 50, None),
        ("begin", "count"),
        ("end", "count", True, 7),
        ("log", "done"),
    ]


async def test_a_lost_lease_is_raised_in_the_thread(stand: ThreadStand) -> None:  # S-11
    stand.recorder.refuse = LeaseLost()
    with pytest.raises(LeaseLost):
        await stand.run(lambda context, _payload: context.log("x"))


async def test_a_wish_to_stop_is_raised_once_at_the_next_report(stand: ThreadStand) -> None:  # S-05
    def handler(context: BlockingTaskContext, payload: Any) -> None:
        try:
            with context.step("count"):
                while True:
                    context.progress(1)
        except TaskCanceled:
            context.log("cleaning up")
            raise

    asyncio.get_running_loop().call_later(0.05, stand.stop.set)
    with pytest.raises(TaskCanceled):
        await stand.run(handler)
    assert stand.recorder.said[-2:] == [("end", "count", False, None), ("log", "cleaning up")]


async def test_no_more_than_the_pools_size_run_at_once(stand: ThreadStand) -> None:
    lock, running, most = threading.Lock(), 0, 0

    def handler(context: BlockingTaskContext, payload: Any) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1

    await asyncio.gather(*(stand.run(handler) for _ in range(20)))
    assert most == 2


async def test_a_handler_nobody_waits_for_can_report_nothing_and_takes_no_place(stand: ThreadStand) -> None:  # S-05
    release, refused, begun = threading.Event(), [], []

    def stubborn(context: BlockingTaskContext, payload: Any) -> str:
        begun.append(context)
        release.wait(60)
        try:
            context.log("late")
        except LeaseLost as exc:
            refused.append(exc)
        return "nobody reads this"

    runs = [asyncio.create_task(stand.run(stubborn)) for _ in range(2)]
    behind = asyncio.create_task(stand.run(lambda _context, _payload: "after all"))
    assert await eventually(lambda: len(begun) == 2)
    for run in runs:
        run.cancel()
    await asyncio.wait(runs)
    assert await asyncio.wait_for(behind, 60) == "after all"
    assert (stand.pool.zombies, stand.pool.abandoned) == (2, 2)
    release.set()
    assert await eventually(lambda: stand.pool.zombies == 0)
    assert len(refused) == 2
    assert stand.recorder.said == []
    assert stand.pool.abandoned == 2
    assert await asyncio.gather(*(stand.run(lambda _context, payload: payload, number) for number in range(9))) == list(
        range(9)
    )


async def test_a_run_canceled_before_it_began_never_begins(stand: ThreadStand) -> None:
    release, begun = threading.Event(), []
    busy = [asyncio.create_task(stand.run(lambda _context, _payload: release.wait(60))) for _ in range(2)]
    waiting = asyncio.create_task(stand.run(lambda _context, _payload: begun.append(1)))
    await asyncio.sleep(0.02)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    release.set()
    await asyncio.gather(*busy)
    await stand.run(lambda _context, _payload: None)
    assert begun == []
    assert stand.pool.zombies == 0


def test_a_stuck_thread_does_not_hold_up_the_end_of_the_process() -> None:
    code = (
        "import asyncio, sys, time\n"
        "from pathlib import Path\n"
        "from tests.tasks.isolation.stand import ThreadStand\n"
        "async def main():\n"
        "    stand = ThreadStand(1, Path())\n"
        "    run = asyncio.create_task(stand.run(lambda _context, _payload: time.sleep(60)))\n"
        "    await asyncio.sleep(0.05)\n"
        "    run.cancel()\n"
        "    stand.pool.close()\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[3], timeout=60, check=False, capture_output=True
    )
    assert ended.returncode == 0

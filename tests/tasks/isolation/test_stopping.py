"""Asking a handler in a child process to stop, and what becomes of one that does not."""

import asyncio
import ctypes
import sys
import time
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from headrace.tasks.errors import TaskCanceled
from headrace.tasks.isolation.children import Children
from headrace.tasks.isolation.errors import Killed
from headrace.tasks.registry import TaskType
from tests.tasks.isolation.program import stops_async
from tests.tasks.isolation.stand import Stand, appearing, closing, eventually, is_gone

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def started(stand: Stand, name: str, mark: Path) -> "asyncio.Task[object]":
    """The run, once its handler is at work and has written its mark."""
    run = asyncio.create_task(stand.run(name, str(mark)))
    assert await eventually(mark.exists, 20)
    return run


async def test_a_handler_that_looks_at_the_flag_ends_as_it_likes(stand: Stand, tmp_path: Path) -> None:  # S-05
    run = await started(stand, "stops", tmp_path / "mark")
    stand.stop.set()
    assert await run == "stopped by myself"


async def test_the_next_report_raises_once_and_what_is_said_while_cleaning_up_goes_through(
    stand: Stand, tmp_path: Path
) -> None:  # S-05
    run = await started(stand, "stops.at_report", tmp_path / "mark")
    stand.stop.set()
    with pytest.raises(TaskCanceled) as caught:
        await run
    assert not isinstance(caught.value, Killed)
    assert stand.recorder.said[-2:] == [("end", "count", False, None), ("log", "cleaning up")]


async def test_an_async_handler_is_canceled(stand: Stand, tmp_path: Path) -> None:  # S-05
    run = await started(stand, "stops.async", tmp_path / "mark")
    stand.stop.set()
    with pytest.raises(TaskCanceled) as caught:
        await run
    assert not isinstance(caught.value, Killed)
    assert stand.recorder.said == [("log", "cleaning up")]


async def test_a_child_that_stopped_when_asked_is_used_again(stand: Stand, tmp_path: Path) -> None:
    before = (await stand.run("who"))["pid"]
    run = await started(stand, "stops.async", tmp_path / "mark")
    stand.stop.set()
    with pytest.raises(TaskCanceled):
        await run
    assert (await Stand(stand.children, tmp_path).run("who"))["pid"] == before


async def test_a_stubborn_handler_is_killed_after_its_grace_with_all_it_started(
    stand: Stand, tmp_path: Path
) -> None:  # S-05
    stand.grace = timedelta(seconds=0.3)
    run = await started(stand, "stubborn", tmp_path / "pids")
    pids = await appearing(tmp_path / "pids")
    asked = time.monotonic()
    stand.stop.set()
    with pytest.raises(Killed):
        await run
    assert time.monotonic() - asked >= 0.3
    assert is_gone(pids[0])
    assert await eventually(lambda: all(map(is_gone, pids)))


async def test_a_run_past_its_time_is_asked_and_then_killed(stand: Stand, tmp_path: Path) -> None:  # S-05
    stand.grace = timedelta(seconds=0.1)
    run = await started(stand, "waits", tmp_path / "pid")
    (pid,) = await appearing(tmp_path / "pid")
    stand.stop.set()
    with pytest.raises(Killed):
        await run
    assert is_gone(pid)


async def test_a_wish_that_comes_before_the_handler_began_is_heard(stand: Stand, tmp_path: Path) -> None:
    for name in ("stops.async", "stops"):  # they are loaded: else their time is spent on that
        before = Stand(stand.children, tmp_path)
        run = await started(before, name, tmp_path / name)
        before.stop.set()
        await asyncio.wait([run])
    stand.stop.set()
    with pytest.raises(TaskCanceled) as caught:
        await stand.run("stops.async", str(tmp_path / "mark"))
    assert not isinstance(caught.value, Killed)
    assert await stand.run("stops", str(tmp_path / "mark")) == "stopped by myself"


async def test_a_run_that_is_stopped_while_its_handler_is_being_imported_ends_at_once(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "slow_program.py").write_text(
        "import pathlib, time\npathlib.Path(__file__).with_name('importing').touch()\ntime.sleep(60)\n"
    )
    slow = TaskType("slow", stops_async, "process")
    monkeypatch.setattr(TaskType, "address", "slow_program:handler")
    async with closing(Children(size=1)) as children:
        other = Stand(children, tmp_path)
        run = asyncio.create_task(other.run_type(slow))
        assert await eventually((tmp_path / "importing").exists, 60)
        (pid,) = children.pids
        other.stop.set()
        with pytest.raises(TaskCanceled):
            await asyncio.wait_for(run, 30)
        assert await eventually(lambda: is_gone(pid))


async def test_a_run_that_waits_for_a_child_stops_at_once(stand: Stand, tmp_path: Path) -> None:
    others = Stand(stand.children, tmp_path)
    busy = [await started(others, "stops", tmp_path / str(number)) for number in range(2)]
    waiting = asyncio.create_task(stand.run("echo"))
    await asyncio.sleep(0.01)
    stand.stop.set()
    with pytest.raises(TaskCanceled):
        await asyncio.wait_for(waiting, 60)
    others.stop.set()
    await asyncio.gather(*busy)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process inherit like the first one")
async def test_a_worker_that_inherits_orphans_as_the_first_process_of_a_container_buries_them(
    stand: Stand, tmp_path: Path
) -> None:
    prctl, set_child_subreaper = ctypes.CDLL(None).prctl, 36
    assert prctl(set_child_subreaper, 1) == 0
    try:
        run = await started(stand, "stubborn", tmp_path / "pids")
        pids = await appearing(tmp_path / "pids")
        run.cancel()
        await asyncio.wait([run])
        assert await eventually(lambda: not any(map(psutil.pid_exists, pids)))
    finally:
        prctl(set_child_subreaper, 0)


async def test_a_canceled_run_kills_its_child_and_all_it_started_at_once(stand: Stand, tmp_path: Path) -> None:
    run = await started(stand, "stubborn", tmp_path / "pids")
    pids = await appearing(tmp_path / "pids")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert await eventually(lambda: all(map(is_gone, pids)))
    assert await Stand(stand.children, tmp_path).run("echo", "next") == "next"

"""Child processes that die: by themselves, by a limit, by somebody's hand, and with their worker."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from headrace.tasks.isolation.errors import Crashed
from headrace.tasks.isolation.guardian import Guardian
from headrace.tasks.model import ErrorCode
from tests.tasks.isolation.stand import Stand, appearing, eventually, is_gone

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("exit", "exited with status 3"),
        ("segfault", "was killed by SIGSEGV"),
        ("deaf", "exited with status 1"),
    ],
)
async def test_a_crash_tells_how_it_died_and_what_it_wrote_last(stand: Stand, how: str, message: str) -> None:
    with pytest.raises(Crashed) as caught:
        await stand.run("dies", how)
    assert f"Its process {message}. It wrote last:\nthe last words" in caught.value.message
    assert caught.value.error_code is ErrorCode.CRASHED
    if how == "segfault":
        assert re.search(r"program\.py.* in dies", caught.value.message)
    assert await stand.run("echo", "the worker lives") == "the worker lives"


async def test_a_child_killed_by_somebody_else_is_not_taken_for_one_that_we_killed(
    stand: Stand, tmp_path: Path
) -> None:  # S-11
    run = asyncio.create_task(stand.run("waits", str(tmp_path / "pid")))
    (pid,) = await appearing(tmp_path / "pid")
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(
        Crashed, match="killed by SIGKILL, and not by its worker: the memory ran out, or another process"
    ):
        await run


async def test_a_polite_signal_to_every_process_of_a_service_does_not_end_a_task(stand: Stand, tmp_path: Path) -> None:
    run = asyncio.create_task(stand.run("stops", str(tmp_path / "mark")))
    assert await eventually((tmp_path / "mark").exists)
    for pid in stand.children.pids:
        os.kill(pid, signal.SIGTERM)
    await asyncio.sleep(0.05)
    stand.stop.set()
    assert await run == "stopped by myself"


async def test_a_task_that_takes_more_memory_than_it_may_fails_alone(stand: Stand) -> None:
    assert await stand.run("eats_memory", 100) == 100 * 1024 * 1024
    with pytest.raises(Crashed, match="It ran out of memory") as caught:
        await stand.run("eats_memory", 1000)
    assert "program.py" in caught.value.message


async def test_the_limits_of_one_task_do_not_hold_for_the_next(stand: Stand) -> None:
    await stand.run("eats_memory", 1)
    await stand.run("burns_cpu", 0.01)
    assert await stand.run("leaks", 400) in stand.children.pids


async def test_a_task_that_burns_more_cpu_time_than_it_may_is_killed(stand: Stand) -> None:
    with pytest.raises(Crashed, match="was killed by SIGXCPU: it used more CPU time than it may"):
        await stand.run("burns_cpu", 60)


async def test_children_and_what_they_started_die_with_a_killed_worker(tmp_path: Path) -> None:  # S-11
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.tasks.isolation.worker_process", str(tmp_path / "pids")], cwd=ROOT
    )
    try:
        pids = await appearing(tmp_path / "pids")
        assert not any(map(is_gone, pids))
    finally:
        worker.kill()
        worker.wait()
    assert await eventually(lambda: all(map(is_gone, pids)))


async def test_a_guardian_that_was_killed_has_an_heir_that_knows_all_groups() -> None:
    guardian = Guardian()
    sleeps = [subprocess.Popen(["sleep", "60"], start_new_session=True) for _ in range(3)]
    try:
        before = {each.pid for each in psutil.Process().children()}
        guardian.watch(sleeps[0].pid)
        (process,) = (each for each in psutil.Process().children() if each.pid not in before)
        process.kill()
        assert await eventually(lambda: is_gone(process.pid))
        guardian.watch(sleeps[1].pid)
        guardian.watch(sleeps[2].pid)
        guardian.forget(sleeps[2].pid)
        await guardian.close()  # its input ends, as when the worker dies
        # Who was killed by another process is gone a moment later.
        assert await eventually(lambda: [each.poll() for each in sleeps] == [-9, -9, None])
    finally:
        for each in sleeps:
            each.kill()
            each.wait()


async def test_a_child_that_starts_after_its_worker_died_ends_at_once() -> None:  # S-11
    messages, theirs = socket.socketpair()
    with messages, theirs:
        number = theirs.fileno()
        command = [sys.executable, "-m", "headrace.tasks.isolation", "1", "network", "files", "", str(number)]
        ended = subprocess.run(command, pass_fds=[number], cwd=ROOT, check=False, capture_output=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")

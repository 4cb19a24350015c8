"""``headrace worker`` as real processes: started, killed, stopped politely and rudely, in a terminal and in a pipe."""

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import asyncpg
import psutil
import pytest

from headrace.cli import up
from headrace.cli.payloads import pairs
from headrace.cli.program import ProgramNotLoaded, load_program
from headrace.cli.supervisor import worker_command
from headrace.cli.worker import _names, say_what_is_waited_for
from headrace.errors import Invalid
from tests.cli.conftest import Call, Place
from tests.e2e.program import HEADRACE, Program, environment, eventually

pytestmark = pytest.mark.long

PROGRAM = """
import asyncio, os, signal
from headrace.tasks.execution import Backoff
from headrace.tasks.registry import Registry
from datetime import timedelta

registry = Registry()
AT_ONCE = Backoff(first=timedelta(0))

@registry.task("greet")
async def greet(context, payload):
    return f"hello {payload['name']} from {os.getpid()}"

@registry.task("sleep", grace=timedelta(seconds=1))
async def sleep(context, payload):
    print("asleep", flush=True)
    await asyncio.sleep(payload["seconds"])

@registry.task("deaf", grace=timedelta(seconds=0))
async def deaf(context, payload):
    print("deaf", flush=True)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

@registry.task("spy", isolation="process")
def spy(context, payload):
    return {"environment": dict(os.environ), "files": sorted(os.listdir("/dev/fd"))}

@registry.task("kill", backoff=AT_ONCE)
async def kill(context, payload):
    if context.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"
"""

Start = Callable[..., Program]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM)
    return tmp_path


@pytest.fixture
def start(folder: Path, migrated: Place) -> Iterator[Start]:
    """``start("shop:registry", "--processes", "2")`` is a worker that is ended with the test."""
    started: list[Program] = []

    def begin(*words: str, **settings: str) -> Program:
        quick = {"HEADRACE_WORKER_LEASE": "1s", **migrated.settings, **settings}
        program = Program("worker", *words, folder=folder, settings=quick)
        started.append(program)
        return program

    yield begin
    for program in started:
        program.close()


class Tasks:
    """Tasks of a database, submitted in SQL."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def _value(self, sql: str, *args: object) -> Any:
        connection = await asyncpg.connect(self._url)
        try:
            return await connection.fetchval(sql, *args)
        finally:
            await connection.close()

    async def submit(self, name: str, payload: object = None, **options: object) -> str:
        named = "".join(f", {option} => '{value}'" for option, value in options.items())
        task_id: str = await self._value(
            f"SELECT headrace.submit($1, $2, unknown_type => 'wait'{named})", name, json.dumps(payload or {})
        )
        return task_id

    async def status(self, task_id: str) -> str:
        status: str = await self._value("SELECT status FROM headrace.tasks WHERE id = $1", task_id)
        return status

    async def result(self, task_id: str) -> Any:
        """Wait for the end; gives the result of a success."""
        deadline = time.monotonic() + 60
        while (status := await self.status(task_id)) not in ("SUCCEEDED", "FAILED", "CANCELED"):
            assert time.monotonic() < deadline, status
            await asyncio.sleep(0.05)
        assert status == "SUCCEEDED", await self._value(
            "SELECT error_message FROM headrace.tasks WHERE id = $1", task_id
        )
        return json.loads(await self._value("SELECT result FROM headrace.tasks WHERE id = $1", task_id))

    async def alive(self, *, media: bool = False) -> int:
        """Without the one for Headrace's media, which every process has where what it needs is installed."""
        wanted = "ended_at IS NULL" + (" AND queues IS DISTINCT FROM '{media}'" if not media else "")
        alive: int = await self._value(f"SELECT count(*) FROM headrace.workers WHERE {wanted}")
        return alive

    async def until_alive(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while await self.alive() != count:
            assert time.monotonic() < deadline, await self.alive()
            await asyncio.sleep(0.05)


@pytest.fixture
def tasks(migrated: Place) -> Tasks:
    return Tasks(migrated.app_url)


# -- one process


async def test_a_worker_runs_tasks_tells_its_figures_and_stops_when_asked(start: Start, tasks: Tasks) -> None:
    worker = start("shop:registry", "--json")
    task_id = await tasks.submit("greet", {"name": "Ada"})
    assert await tasks.result(task_id) == f"hello Ada from {worker.process.pid}"
    assert eventually(lambda: '"finished":1' in worker.out), worker.out
    line = json.loads(worker.out.splitlines()[-1])
    assert line.keys() == {"at", "processes", "per_second", "waiting", "running", "finished", "failed", "lost"}
    assert (line["processes"], line["waiting"], line["running"]) == (1, 0, 0)
    assert worker.stop(signal.SIGTERM) == 0
    assert await tasks.alive() == 0
    assert worker.err.splitlines()[-1] == "stopped; 1 task done"


async def test_a_handler_in_a_child_sees_nothing_of_the_workers_settings(
    start: Start, tasks: Tasks, migrated: Place
) -> None:
    start("shop:registry", HEADRACE_SECRET_KEY="swordfish-swordfish-swordfish-swordfish", SHOP_TOKEN="swordfish")
    found = await tasks.result(await tasks.submit("spy"))
    assert [name for name in found["environment"] if name.startswith(("HEADRACE_", "SHOP_", "PG"))] == []
    assert "swordfish" not in str(found)
    assert migrated.app_url not in str(found)
    # Input, output, errors, the connection to the worker, and the folder while it is listed.
    assert len(found["files"]) == 5


async def test_without_a_program_it_runs_what_the_product_does_for_itself(start: Start, tasks: Tasks) -> None:
    worker = start()
    await tasks.until_alive(1)
    greeting = await tasks.submit("greet", {"name": "Ada"})
    assert (await tasks.result(await tasks.submit("headrace.purge"))).keys()
    assert await tasks.status(greeting) == "QUEUED"
    assert worker.stop(signal.SIGTERM) == 0
    assert worker.err.splitlines()[-1] == "stopped; 1 task done"


def test_several_processes_need_no_program_either() -> None:
    assert worker_command(None, "--poll-only")[-2:] == ["worker", "--poll-only"]
    assert worker_command("shop:registry")[-2:] == ["worker", "shop:registry"]


async def test_it_takes_only_what_it_is_asked_to(start: Start, tasks: Tasks) -> None:
    other = await tasks.submit("greet", {"name": "Ada"}, queue="other")
    heavy = await tasks.submit("greet", {"name": "Ada"}, queue="slow", labels='{"gpu": "yes"}')
    mine = await tasks.submit("greet", {"name": "Ada"}, queue="slow", labels='{"zone": "a"}')
    start("shop:registry", "--queues", "slow,night", "--labels", "zone=a,size=big", "--labels", "os=linux")
    await tasks.result(mine)
    assert [await tasks.status(each) for each in (other, heavy)] == ["QUEUED", "QUEUED"]


async def test_up_says_what_it_waits_for_too(capsys: pytest.CaptureFixture[str]) -> None:
    stop = asyncio.Event()
    telling = asyncio.create_task(
        up._tell_what_is_waited_for(
            stop, [Mock(running=0, blocked_ends=0), Mock(running=2, blocked_ends=0)], timedelta(seconds=30)
        )
    )
    await asyncio.sleep(0)
    assert capsys.readouterr().err == ""
    stop.set()
    await telling
    said = "stopping: waiting for 2 tasks to end, at most 30 s; Ctrl-C again ends at once\n"
    assert capsys.readouterr().err == said


async def test_stopping_waits_for_what_runs(start: Start, tasks: Tasks) -> None:
    worker = start("shop:registry", "--poll-only", "--concurrency", "2")
    task_id = await tasks.submit("sleep", {"seconds": 2})
    assert eventually(lambda: "asleep" in worker.out), worker.err
    assert worker.stop(signal.SIGINT) == 0
    assert "stopping: waiting for 1 task to end, at most 30 s; Ctrl-C again ends at once" in worker.err
    assert await tasks.status(task_id) == "SUCCEEDED"


async def test_a_handler_that_swallows_every_cancellation_does_not_keep_the_process(start: Start, tasks: Tasks) -> None:
    worker = start("shop:registry", HEADRACE_WORKER_SHUTDOWN_TIMEOUT="100ms")
    task_id = await tasks.submit("deaf")
    assert eventually(lambda: "deaf" in worker.out), worker.err
    assert worker.stop(signal.SIGTERM) == 0
    assert "worker.exits_hard" in worker.err
    assert (await tasks.status(task_id), await tasks.alive(media=True)) == ("QUEUED", 0)


async def test_a_second_ctrl_c_ends_it_at_once(start: Start, tasks: Tasks) -> None:
    worker = start("shop:registry")
    await tasks.submit("sleep", {"seconds": 600})
    assert eventually(lambda: "asleep" in worker.out), worker.err
    worker.press_ctrl_c()
    assert eventually(lambda: "worker.stopping" in worker.err), worker.err
    assert worker.stop(signal.SIGINT) == 130


@pytest.mark.slow
async def test_a_reader_who_goes_away_ends_it(folder: Path, migrated: Place, tasks: Tasks) -> None:
    reading, writing = os.pipe()
    with subprocess.Popen(
        [*HEADRACE, "worker", "shop:registry", "--json"],
        cwd=folder,
        env=environment(migrated.settings),
        stdout=writing,
        stderr=subprocess.PIPE,
    ) as worker:
        os.close(writing)
        await tasks.until_alive(1)
        os.close(reading)
        assert worker.wait(60) == 0
        assert worker.stderr is not None
        assert b"BrokenPipe" not in worker.stderr.read()


# -- several processes


async def test_processes_share_the_work_and_stop_together(start: Start, tasks: Tasks) -> None:
    supervisor = start("shop:registry", "--processes", "2", "--concurrency", "1", "--json")
    await tasks.until_alive(2)
    naps = [await tasks.submit("sleep", {"seconds": 1}) for _ in range(2)]
    for nap in naps:
        await tasks.result(nap)
    assert eventually(lambda: '"finished":2' in supervisor.out), supervisor.out
    assert '"processes":2' in supervisor.out
    supervisor.press_ctrl_c()
    assert supervisor.process.wait(60) == 0
    assert await tasks.alive() == 0


async def test_a_process_that_dies_is_replaced_and_its_task_runs_again(start: Start, tasks: Tasks) -> None:
    supervisor = start("shop:registry", "--processes", "2")
    await tasks.until_alive(2)
    task_id = await tasks.submit("kill")
    assert await tasks.result(task_id) == "survived"
    assert "worker.process_ended" in supervisor.err
    assert "SIGKILL" in supervisor.err
    await tasks.until_alive(2)


async def test_children_stop_by_themselves_when_the_supervisor_is_killed(start: Start, tasks: Tasks) -> None:
    supervisor = start("shop:registry", "--processes", "2")
    await tasks.until_alive(2)
    children = psutil.Process(supervisor.process.pid).children()
    assert len(children) == 2
    supervisor.kill()
    _, left = psutil.wait_procs(children, timeout=60)
    assert left == []
    assert await tasks.alive() == 0  # each said goodbye


@pytest.mark.slow
async def test_a_second_ctrl_c_ends_all_processes_at_once(start: Start, tasks: Tasks) -> None:
    supervisor = start("shop:registry", "--processes", "2")
    await tasks.until_alive(2)
    await tasks.submit("sleep", {"seconds": 60})
    assert eventually(lambda: "asleep" in supervisor.out), supervisor.err
    children = psutil.Process(supervisor.process.pid).children()
    supervisor.press_ctrl_c()
    assert eventually(lambda: "worker.stopping" in supervisor.err), supervisor.err
    assert supervisor.stop(signal.SIGINT) == 130
    _, left = psutil.wait_procs(children, timeout=60)
    assert left == []


def test_a_program_that_cannot_be_loaded_is_told_once(start: Start) -> None:
    supervisor = start("nowhere:registry", "--processes", "3")
    assert supervisor.process.wait(60) == 2
    assert supervisor.err.count("There is no module nowhere here") == 1


# -- beside the API


@pytest.mark.slow
async def test_up_runs_a_worker_for_a_program(folder: Path, migrated: Place, tasks: Tasks) -> None:
    up = Program("up", "--app", "shop:registry", folder=folder, settings=migrated.settings)
    try:
        up.until_ready()
        pid = int((await tasks.result(await tasks.submit("greet", {"name": "Ada"}))).split()[-1])
        assert pid != up.process.pid  # a busy handler must not keep requests waiting
        assert up.stop(signal.SIGINT) == 0
        assert await tasks.alive() == 0
    finally:
        up.close()


def test_up_stops_when_the_program_cannot_be_loaded(folder: Path, migrated: Place) -> None:
    up = Program("up", "--app", "nowhere:registry", folder=folder, settings=migrated.settings)
    try:
        assert up.process.wait(60) == 2, up.err
        assert "There is no module nowhere here" in up.err
    finally:
        up.close()


# -- in a terminal


async def test_a_terminal_shows_a_live_line(folder: Path, migrated: Place, tasks: Tasks) -> None:
    terminal, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    with subprocess.Popen(
        [*HEADRACE, "worker", "shop:registry"],
        cwd=folder,
        env={**environment(migrated.settings), "TERM": "xterm"},
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
    ) as worker:
        os.close(side)
        os.set_blocking(terminal, False)
        shown = ""

        def read() -> str:
            nonlocal shown
            with contextlib.suppress(OSError):  # nothing there, or nobody there any more
                shown += os.read(terminal, 1 << 16).decode(errors="replace")
            return shown

        await tasks.result(await tasks.submit("greet", {"name": "Ada"}))
        assert eventually(lambda: "0 running · 0 waiting · 1 done" in read()), shown
        worker.send_signal(signal.SIGINT)
        assert eventually(lambda: (read(), worker.poll())[1] is not None)
        assert worker.returncode == 0
        assert "stopped; 1 task done" in read()
    os.close(terminal)


# -- what is refused


BROKEN = [
    ("nowhere:registry", None, "There is no module nowhere here: run this in the folder"),
    ("broken", "", "'broken' is no address of a registry: it looks like package.module:attribute."),
    ("broken:registry", "", "broken has no registry."),
    ("broken:regsitry", "registry = 7", r"broken has no regsitry: did you mean registry\?"),
    ("broken:registry", "registry = 7", "broken:registry is no registry of task types but a int."),
    ("broken:registry", "from headrace.tasks.registry import Registry\nregistry = Registry()", "has no task types"),
    ("broken:registry", "x = 1\nx / 0", r"broken cannot be imported: ZeroDivisionError: division by zero \(.*, line 2"),
    ("broken:registry", "def f(:", r"broken cannot be imported: SyntaxError: .* \(.*broken.py, line 1\)"),
    ("broken:registry", "import nonsense", r"No module named 'nonsense' \(.*broken.py, line 1\)"),
    ("broken:registry", "raise SystemExit(3)", r"broken cannot be imported: SystemExit: 3 \(.*broken.py, line 1\)"),
]


@pytest.mark.parametrize(("address", "source", "says"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_program_is_explained_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, source: str | None, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "broken", raising=False)
    if source is not None:
        (tmp_path / "broken.py").write_text(source)
    with pytest.raises(ProgramNotLoaded, match=says) as refused:
        load_program(address)
    assert "\n" not in refused.value.message


def test_options_are_read(call: Call) -> None:
    assert _names(None) is None
    assert _names("a, b,") == ["a", "b"]
    assert pairs(["zone=a,size=", " os = linux "]) == {"zone": "a", "size": "", "os": "linux"}
    with pytest.raises(Invalid, match="takes key=value"):
        pairs(["gpu"])
    done = call("worker", "shop:registry", "--queues", " ,")
    assert (done.code, done.complaint) == (
        2,
        "--queues names no queue: write --queues a,b or leave it out for all of them.",
    )


def test_a_database_without_a_schema_is_refused(call: Call, empty: Place, folder: Path) -> None:
    done = call("worker", "shop:registry", settings=empty.settings)
    assert done.code == 4
    assert "headrace migrate" in done.complaint


def test_who_stops_it_reads_what_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    limit = timedelta(seconds=30)
    say_what_is_waited_for([Mock(running=0, blocked_ends=0)], limit)
    assert capsys.readouterr().err == ""
    say_what_is_waited_for([Mock(running=1, blocked_ends=0), Mock(running=1, blocked_ends=3)], limit)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("stopping: waiting for 2 tasks to end, at most 30 s")
    assert second.startswith("stopping: another session's open transaction blocks the ends of 3 tasks; another process")

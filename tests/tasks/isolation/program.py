"""The program that the children of these tests load."""

import asyncio
import contextlib
import ctypes
import errno
import logging
import multiprocessing
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel

from headrace import logs
from headrace.tasks.context import BlockingTaskContext, TaskContext
from headrace.tasks.errors import Fatal, Snooze, TaskCanceled
from headrace.tasks.execution import ProcessLimits
from headrace.tasks.registry import Handler, Registry

registry = Registry()
MEBIBYTE = 1024 * 1024


HandlerT = TypeVar("HandlerT", bound=Handler)


def task(name: str, **options: Any) -> Callable[[HandlerT], HandlerT]:
    return registry.task(name, isolation="process", **options)


class Order(BaseModel):
    number: int


class Receipt(BaseModel):
    number: int
    said: str


@task("echo")
def echo(context: BlockingTaskContext, payload: Any) -> Any:
    return payload


@task("echo.async")
async def echo_async(context: TaskContext, payload: Any) -> Any:
    await asyncio.sleep(0)
    return payload


@task("logs")
def logs_(context: BlockingTaskContext, payload: Any) -> None:
    logs.get(__name__).info("figures.added", number=payload)
    logging.getLogger(__name__).debug("not %s", "wanted")
    logging.getLogger(__name__).warning("plain %s", "words")


@task("who")
def who(context: BlockingTaskContext, payload: Any) -> Any:
    return {
        "pid": os.getpid(),
        "task_id": context.task_id,
        "user_id": context.user_id,
        "attempt": context.attempt,
        "trace_id": context.trace_id,
        "scratch": str(context.scratch),
        "main_thread": threading.current_thread() is threading.main_thread(),
    }


@task("typed")
def typed(context: BlockingTaskContext, payload: Order) -> Receipt:
    return Receipt(number=payload.number, said=type(payload).__name__)


@task("reports", steps=("fetch", "count"))
def reports(context: BlockingTaskContext, payload: Any) -> Any:
    context.log("begins")
    with context.step("fetch") as step:
        found = step.detail if step.done else None
    context.progress(40.4, eta_seconds=2.6)
    with context.step("count") as step:
        step.detail = {"counted": 7}
    return {"fetched": found}


@task("reports.async", steps=("fetch", "count"))
async def reports_async(context: TaskContext, payload: Any) -> Any:
    await context.log("begins")
    async with context.step("fetch") as step:
        found = step.detail if step.done else None
    await context.progress(40.4, eta_seconds=2.6)
    async with context.step("count") as step:
        step.detail = {"counted": 7}
    return {"fetched": found}


@task("reports.together")
async def reports_together(context: TaskContext, payload: Any) -> None:
    await asyncio.gather(*(context.log(str(number)) for number in range(20)))


@task("reports.late")
def reports_late(context: BlockingTaskContext, payload: str) -> None:
    def report() -> None:
        time.sleep(0.1)
        try:
            context.log("late")
        except Exception as exc:  # noqa: BLE001
            Path(payload).write_text(type(exc).__name__)

    threading.Thread(target=report).start()


@task("finishes_in")
async def finishes_in(context: TaskContext, payload: Any) -> None:
    await context.finish_in(None)


class Unlucky(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@task("raises")
def raises(context: BlockingTaskContext, payload: str) -> None:
    match payload:
        case "value":
            raise ValueError("the third line is empty")
        case "fatal":
            raise Fatal("this file is not yours", path=Path("a"), line=3)
        case "snooze":
            raise Snooze(timedelta(minutes=1.5))
        case "exit":
            sys.exit(4)
        case "unlucky":
            raise Unlucky
        case "halves":
            raise ValueError("half a character: \ud83d")
        case "memory":
            raise MemoryError


@task("raises.async")
async def raises_async(context: TaskContext, payload: Any) -> None:
    raise KeyError(payload)


@task("gives")
def gives(context: BlockingTaskContext, payload: str) -> Any:
    return {"set": {1, 2}, "huge": "x" * 2_000_000, "nul": "a\0b"}[payload]


@task("step_detail_is_a_set")
def step_detail_is_a_set(context: BlockingTaskContext, payload: Any) -> None:
    with context.step("count") as step:
        step.detail = {1, 2}


@task("stops")
def stops(context: BlockingTaskContext, payload: str) -> str:
    """Cooperative: looks at the flag, and says what it did about it."""
    Path(payload).touch()
    while not context.canceled:
        time.sleep(0.005)
    return "stopped by myself"


@task("stops.at_report")
def stops_at_report(context: BlockingTaskContext, payload: str) -> None:
    try:
        with context.step("count"):
            while True:
                context.progress(1)
                Path(payload).touch()
                time.sleep(0.005)
    except TaskCanceled:
        context.log("cleaning up")
        raise


@task("stops.async")
async def stops_async(context: TaskContext, payload: str) -> None:
    Path(payload).touch()
    try:
        await asyncio.sleep(60)
    finally:
        await context.log("cleaning up")


@task("stubborn")
def stubborn(context: BlockingTaskContext, payload: str) -> None:
    """Starts a program and a forked process, writes their ids, and sleeps whatever anybody says."""
    program = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"])
    forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    forked.start()
    tell(payload, [os.getpid(), program.pid, forked.pid])
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(60)


@task("leaves_a_daemon")
def leaves_a_daemon(context: BlockingTaskContext, payload: str) -> int:
    """Forks twice, as daemons do, writes the id of the second process, and ends without it."""
    if (first := os.fork()) == 0:
        if (second := os.fork()) == 0:
            time.sleep(600)
            os._exit(0)
        tell(payload, second)
        os._exit(0)
    os.waitpid(first, 0)
    return os.getpid()


@task("terminates_its_own")
def terminates_its_own(context: BlockingTaskContext, payload: Any) -> list[int | None]:
    program = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"])
    forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    forked.start()
    program.terminate()
    forked.terminate()
    forked.join(10)
    return [program.wait(10), forked.exitcode]


@task("dies")
def dies(context: BlockingTaskContext, payload: str) -> None:
    sys.stderr.write("the last words\n")
    match payload:
        case "exit":
            os._exit(3)
        case "segfault":
            ctypes.string_at(0)
        case "deaf":
            os.closerange(3, 200)


@task("waits")
def waits(context: BlockingTaskContext, payload: str) -> str:
    """Writes its id and waits until somebody does something about it."""
    tell(payload, [os.getpid()])
    time.sleep(60)
    return "nobody came"


@task("eats_memory", limits=ProcessLimits(memory_bytes=200 * MEBIBYTE))
def eats_memory(context: BlockingTaskContext, payload: int) -> int:
    return len(bytearray(payload * MEBIBYTE))


@task("burns_cpu", limits=ProcessLimits(cpu_seconds=1))
def burns_cpu(context: BlockingTaskContext, payload: float) -> str:
    until = time.process_time() + payload
    while time.process_time() < until:
        pass
    return "done"


kept: list[bytearray] = []


@task("leaks")
def leaks(context: BlockingTaskContext, payload: int) -> int:
    kept.append(bytearray(b"x" * payload * MEBIBYTE))
    return os.getpid()


@task("chats")
def chats(context: BlockingTaskContext, payload: int) -> str:
    for number in range(payload):
        print(f"line {number} " + "." * 80)  # noqa: T201
    return "said"


@task("looks_around")
def looks_around(context: BlockingTaskContext, payload: Any) -> dict[str, Any]:
    descriptors = {}
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            descriptors[int(entry.name)] = str(entry.readlink())
    return {
        "descriptors": [name for number, name in sorted(descriptors.items()) if not name.startswith("/proc/")],
        "leads_group": os.getpgrp() == os.getpid() == os.getsid(0),
        "oom_score_adj": int(Path("/proc/self/oom_score_adj").read_text()),
        "environment": dict(os.environ),
        "first_environment": Path("/proc/self/environ").read_text().split("\0"),
        "arguments": sys.orig_argv,
        "status": dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines()),
        "stdin": sys.stdin.read(),
        "sigterm": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
    }


@task("limits")
def limits(context: BlockingTaskContext, payload: Any) -> dict[str, int]:
    return {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in payload}


@task("limits.narrow", limits=ProcessLimits(file_bytes=4096, open_files=32, processes=500, cpu_seconds=100))
def limits_narrow(context: BlockingTaskContext, path: str) -> dict[str, Any]:
    file, opened, refused = Path(path), [], []
    try:
        file.write_bytes(b"x" * 5000)
    except OSError as exc:
        refused.append(exc.strerror)
    try:
        opened = [file.open() for _ in range(40)]
    except OSError as exc:
        refused.append(exc.strerror)
    for each in opened:
        each.close()
    return {"refused": refused, "processes": resource.getrlimit(resource.RLIMIT_NPROC)[0]}


@task("overstays", limits=ProcessLimits(wall_seconds=1))
def overstays(context: BlockingTaskContext, payload: str) -> None:
    tell(payload, [os.getpid()])
    time.sleep(60)


@task("offline", network=False)
def offline(context: BlockingTaskContext, payload: Any) -> dict[str, Any]:
    """Tries each way out, its own and that of a program it starts; what stays inside the process works."""
    found: dict[str, Any] = {}
    for family in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"):
        try:
            socket.socket(getattr(socket, family), socket.SOCK_DGRAM).close()
        except OSError as exc:
            found[family] = exc.strerror
    try:
        socket.socketpair(type=socket.SOCK_DGRAM)  # of which one half could send to any name
    except OSError as exc:
        found["datagrams"] = exc.strerror
    program = "import socket; socket.socket()"
    run = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    found["program"] = run.stderr.splitlines()[-1]
    asyncio.run(asyncio.sleep(0))
    return found


@task("kernel_calls")
def kernel_calls(context: BlockingTaskContext, payload: dict[str, int]) -> dict[str, str]:
    """The errors of system calls without arguments, by their names."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = {}
    for name, number in payload.items():
        ctypes.set_errno(0)
        libc.syscall(number, 0, 0, 0, 0, 0, 0)
        found[name] = errno.errorcode.get(ctypes.get_errno(), "none")
    pid = libc.syscall(56 if platform.machine() == "x86_64" else 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    found["clone with CLONE_NEWUSER"] = errno.errorcode[ctypes.get_errno()] if pid < 0 else "none"
    return found


@task("escapes")
def escapes(context: BlockingTaskContext, payload: str) -> dict[str, str | None]:
    def in_fork(act: Callable[[], object]) -> str | None:
        read, write = os.pipe()
        if os.fork() == 0:
            try:
                act()
            except OSError as exc:
                os.write(write, type(exc).__name__.encode())
            os._exit(0)
        os.close(write)
        os.wait()
        with os.fdopen(read) as answer:
            return answer.read() or None

    def start() -> None:
        subprocess.run(["true"], start_new_session=True, check=True)

    return {
        "setsid": in_fork(os.setsid),
        "setpgid": in_fork(lambda: os.setpgid(0, 0)),
        "start_new_session": in_fork(start),
    }


@task("reaches_out")
def reaches_out(context: BlockingTaskContext, payload: dict[str, Any]) -> dict[str, str | None]:
    """Tries what a decoder that was taken over would try with the worker; and what handlers may do."""

    def attempt(act: Callable[[], object]) -> str | None:
        try:
            act()
        except OSError as exc:
            return type(exc).__name__
        return None

    worker, folder = payload["worker"], Path(payload["folder"])
    (folder / "inner").mkdir()
    (folder / "file").touch()
    return {
        "environment": attempt(Path(f"/proc/{worker}/environ").read_bytes),
        "memory": attempt(lambda: Path(f"/proc/{worker}/mem").open("rb").close()),
        "files": attempt(Path(f"/proc/{worker}/fd/0").readlink),
        "signal": attempt(lambda: os.kill(worker, 0)),
        "rename": attempt(lambda: (folder / "file").rename(folder / "inner" / "file")),
    }


def tell(path: str, value: Any) -> None:
    """Write in one go: who waits for the file shall not read half of it."""
    part = Path(f"{path}.part")
    part.write_bytes(orjson.dumps(value))
    part.rename(path)

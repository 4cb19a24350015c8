"""A child process, as ``__main__.py`` starts it.

Imports handlers by their addresses and runs one task after the other in its main thread. A second thread listens to the
worker, so that a wish to stop is heard while a handler is busy. Its environment is that of environment.py; standard
output and error go to the worker's standard error.
"""

import asyncio
import contextlib
import faulthandler
import functools
import gc
import inspect
import itertools
import os
import queue
import socket
import sys
import threading
import traceback
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headrace import logs
from headrace.tasks import addresses, storable
from headrace.tasks.context import BlockingTaskContext, Facts, StepRecord, TaskContext
from headrace.tasks.errors import Fatal, LeaseLost, PayloadInvalid, TaskCanceled
from headrace.tasks.execution import ProcessLimits
from headrace.tasks.isolation import confinement, endings, preloading, wire
from headrace.tasks.isolation.limits import limited
from headrace.tasks.isolation.sandbox import Powers
from headrace.tasks.isolation.stopping import StopOnce
from headrace.tasks.isolation.wire import Message
from headrace.tasks.model import Claimed
from headrace.tasks.registry import Handler, Registry, TaskType


class Run:
    """One task under way in this process."""

    def __init__(self, order: Message, link: "Link") -> None:
        self.number: int = order["run"]
        self.address: str = order["address"]
        self.claimed = wire.unpack_claimed(order["claimed"])
        # None: the worker sets them from outside.
        self.limits = None if order["limits"] is None else ProcessLimits(**order["limits"])
        self.result_limit: int = order["limit"]
        self.stop_asked = threading.Event()
        self.facts = Facts(
            self.claimed,
            tuple(order["steps"]),
            Path(order["scratch"]),
            self.stop_asked,
            descriptors=link.take_descriptors(order["descriptors"]),
        )
        self.over = False
        self._link = link
        self._lock = threading.Lock()
        self._on_loop: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None

    def ask_to_stop(self) -> None:
        with self._lock:
            self.stop_asked.set()
            on_loop = self._on_loop
        if on_loop is not None:
            loop, task = on_loop
            with contextlib.suppress(RuntimeError):  # the loop is closed: the handler has just ended
                loop.call_soon_threadsafe(task.cancel)

    def handle(self, task_type: TaskType, payload: Any) -> Any:
        if inspect.iscoroutinefunction(task_type.handler):
            return asyncio.run(self._handle_async(task_type, payload))
        return task_type.handler(BlockingTaskContext(self.facts, BlockingReports(self)), payload)

    async def _handle_async(self, task_type: TaskType, payload: Any) -> Any:
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            self._on_loop = asyncio.get_running_loop(), task
            if self.stop_asked.is_set():
                raise TaskCanceled
        return await task_type.handler(TaskContext(self.facts, Reports(self)), payload)

    def call(self, verb: str, *args: Any, **kwargs: Any) -> "Future[Message]":
        if self.over:
            # A thread that the handler left behind: its task may be running elsewhere by now.
            raise LeaseLost("This task is over: nothing more can be reported for it.")
        return self._link.call(self.number, verb, args, kwargs)


_NO_FINISH_IN = (
    "finish_in is not available with isolation='process': the task's lease lies with the worker, in another process. "
    "Give the result back, or leave isolation out."
)


class BlockingReports:
    """``BlockingReporter`` over the link."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._stop = StopOnce(run.stop_asked)

    def call(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        self._stop.check(verb)
        if verb == "finish_in":
            raise Fatal(_NO_FINISH_IN)
        return wire.unpack_reply(self._run.call(verb, *args, **kwargs).result(), verb)


class Reports:
    """``Reporter`` over the link."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def _call(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        return wire.unpack_reply(await asyncio.wrap_future(self._run.call(verb, *args, **kwargs)), verb)

    async def progress(self, _claimed: Claimed, percent: int, eta_seconds: int | None) -> None:
        await self._call("progress", percent, eta_seconds)

    async def extend(self, _claimed: Claimed, seconds: int) -> None:
        await self._call("extend", seconds)

    async def log(self, _claimed: Claimed, message: str) -> None:
        await self._call("log", message)

    async def used(self, _claimed: Claimed, units: int) -> None:
        await self._call("used", units)

    async def begin_step(self, _claimed: Claimed, name: str) -> StepRecord:
        record: StepRecord = await self._call("begin_step", name)
        return record

    async def end_step(self, _claimed: Claimed, name: str, *, succeeded: bool, detail: Any, millis: int) -> None:
        await self._call("end_step", name, succeeded=succeeded, detail=detail, millis=millis)

    async def save_result(self, _claimed: Claimed, path: str, name: str, mime_type: str | None) -> None:
        await self._call("save_result", path, name, mime_type)

    async def finish_in(self, _claimed: Claimed, _connection: Any, _result: Any) -> None:
        raise Fatal(_NO_FINISH_IN)


class Link:
    """The connection to the worker."""

    def __init__(self, connection: socket.socket, files: socket.socket | None) -> None:
        self._connection = connection
        self._files = files
        self._sending = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Message]] = {}
        self._orders: queue.SimpleQueue[str | Run | None] = queue.SimpleQueue()  # an address to load, or a task
        self._handlers: dict[str, Handler] = {}
        self._run: Run | None = None

    def say(self, message: Message) -> None:
        packed = wire.pack(message)
        with self._sending:
            self._connection.sendall(packed)

    def take_descriptors(self, count: int) -> tuple[int, ...]:
        """The open files of a run: they were sent before it."""
        if count == 0:
            return ()
        assert self._files is not None
        _, descriptors, _, _ = socket.recv_fds(self._files, 1, count)
        assert len(descriptors) == count
        return tuple(descriptors)

    def call(self, run: int, verb: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Future[Message]":
        number, answer = next(self._numbers), Future[Message]()
        self._waiting[number] = answer
        try:
            self.say({"say": "call", "run": run, "call": number, "verb": verb, "args": args, "kwargs": kwargs})
        except BaseException:
            del self._waiting[number]
            raise
        return answer

    def serve(self) -> None:
        """Run tasks until the worker closes the connection."""
        threading.Thread(target=self._listen, name="headrace-link", daemon=True).start()
        while (order := self._orders.get()) is not None:
            if isinstance(order, Run):
                gc.enable()
                self._perform(order)
            else:
                self._load(order)

    def _load(self, address: str) -> None:
        try:
            handler = addresses.load_handler(address)
            preloading.preload(handler)
            self._handlers[address] = handler
            gc.freeze()  # loaded modules stay to the end
        except LookupError as exc:
            self.say({"say": "broken", "error": wire.text(str(exc))})
        except BaseException as exc:  # noqa: BLE001 - whatever an import raises is reported, SystemExit too
            self.say({"say": "broken", "error": endings.describe(exc)})
        else:
            self.say({"say": "ready", "memory": confinement.resident_bytes()})

    def _perform(self, run: Run) -> None:
        end = perform(run, self._handlers[run.address])
        self._run, run.over = None, True
        for descriptor in run.facts.descriptors:
            with contextlib.suppress(OSError):  # closed by the handler
                os.close(descriptor)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # closed by the handler: its own affair
                stream.flush()
        left = confinement.has_live_children()
        self.say({"say": "end", "run": run.number, "memory": confinement.resident_bytes(), "left": left, **end})

    def _listen(self) -> None:
        try:
            while (message := wire.receive(self._connection)) is not None:
                self._take(message)
        except BaseException:  # noqa: BLE001 - deaf, this process is of no use; the worker shows what is written here
            traceback.print_exc()
            os._exit(70)
        if self._run is not None:
            confinement.kill_own_group()  # the worker is gone, and with it the right to continue
        self._orders.put(None)

    def _take(self, message: Message) -> None:
        match message["do"]:
            case "load":
                self._orders.put(message["address"])
            case "run":
                # Here and not in the main thread, so that a wish to stop right behind it finds it.
                self._run = run = Run(message, self)
                self._orders.put(run)
            case "stop":
                if (current := self._run) is not None and current.number == message["run"]:
                    current.ask_to_stop()
            case "reply":
                answer = self._waiting.pop(message["call"], None)
                if answer is not None and answer.set_running_or_notify_cancel():
                    answer.set_result(message)


def perform(run: Run, handler: Handler) -> Message:
    """Run the task and report its end, whatever its handler does."""
    try:
        task_type = _declared(run.claimed.task_type, handler)
        try:
            payload = task_type.check_payload(run.claimed.payload)
        except PayloadInvalid as exc:
            return endings.of_bad_payload(exc)
        with contextlib.nullcontext() if run.limits is None else limited(run.limits):
            result = run.handle(task_type, payload)
            return _ending_with(task_type, result, run.result_limit)
    except BaseException as exc:  # noqa: BLE001 - whatever a handler raises is reported, SystemExit too
        return endings.of_exception(exc, asked_to_stop=run.stop_asked.is_set())


@functools.cache
def _declared(name: str, handler: Handler) -> TaskType:
    """The type as its handler's annotations declare it; the rest of it concerns the worker alone."""
    registry = Registry()
    registry.task(name, isolation="process")(handler)
    return registry.get(name)


def _ending_with(task_type: TaskType, result: Any, limit: int) -> Message:
    try:
        return endings.of_result(storable.encode(task_type.plain_result(result), limit=limit))
    except storable.NotStorable as exc:
        return endings.of_bad_result(f"The result {exc}.")
    except ValidationError as exc:
        return endings.of_bad_result(f"The result does not fit {task_type.name}: {exc}")


def main(connection: socket.socket, files: socket.socket | None, worker_pid: int, powers: Powers) -> None:
    faulthandler.enable(all_threads=False)  # where a handler was when it crashed
    missing = confinement.settle(worker_pid, powers)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    link = Link(connection, files)
    order = wire.receive(connection)
    if order is None:
        return
    if order["logs"] is not None:  # its lines appear among the worker's
        format_, level = order["logs"]
        logs.configure(format=format_, level=level)
    sys.path[:] = order["path"]
    link.say({"say": "ready", "memory": confinement.resident_bytes(), "missing": missing})
    link.serve()

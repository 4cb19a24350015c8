"""Children of program.py, and what a worker does with them, without a database: reports go into a list."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import psutil

from headrace.tasks.context import BlockingTaskContext, Facts, StepRecord
from headrace.tasks.isolation.children import Children
from headrace.tasks.isolation.threads import Threads, run_in_thread
from headrace.tasks.model import Claimed
from headrace.tasks.registry import Registry, TaskType
from tests.tasks.isolation.program import registry

Blocking = Callable[[BlockingTaskContext, Any], Any]
_numbers = itertools.count(1)


@dataclass
class Recorder:
    """A ``Reporter`` that remembers; ``refuse`` is raised instead from the moment it is set."""

    said: list[tuple[Any, ...]] = field(default_factory=list)
    done_steps: dict[str, Any] = field(default_factory=dict)
    refuse: BaseException | None = None

    def _note(self, *words: Any) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.said.append(words)

    async def progress(self, _claimed: Claimed, percent: int, eta_seconds: int | None) -> None:
        self._note("progress", percent, eta_seconds)

    async def extend(self, _claimed: Claimed, seconds: int) -> None:
        self._note("extend", seconds)

    async def log(self, _claimed: Claimed, message: str) -> None:
        self._note("log", message)

    async def used(self, _claimed: Claimed, units: int) -> None:
        self._note("used", units)

    async def begin_step(self, _claimed: Claimed, name: str) -> StepRecord:
        self._note("begin", name)
        return StepRecord(name, name in self.done_steps, self.done_steps.get(name))

    async def end_step(self, _claimed: Claimed, name: str, *, succeeded: bool, detail: Any, millis: int) -> None:
        assert isinstance(millis, int)
        self._note("end", name, succeeded, detail)

    async def finish_in(self, _claimed: Claimed, _connection: Any, _result: Any) -> None:
        raise AssertionError("a child cannot do this")

    async def save_result(self, _claimed: Claimed, path: str, name: str, mime_type: str | None) -> None:
        self._note("save_result", path, name, mime_type)


def claim(task_type: str, payload: Any = None) -> Claimed:
    number = next(_numbers)
    return Claimed(number, f"tsk_{number}", 2, task_type, "u_1", payload, 1, 3, None, "trace-1", datetime.now(UTC))


@dataclass
class Stand:
    """Runs tasks as a worker would."""

    children: Children
    scratch: Path
    recorder: Recorder = field(default_factory=Recorder)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    grace: timedelta = timedelta(seconds=20)

    async def run(self, name: str, payload: Any = None, *, result_limit: int = 256 * 1024) -> Any:
        return await self.run_type(registry.get(name), payload, result_limit=result_limit)

    async def run_type(self, task_type: TaskType, payload: Any = None, *, result_limit: int = 256 * 1024) -> Any:
        claimed = claim(task_type.name, payload)
        return await self.children.run(
            task_type,
            claimed,
            Facts(claimed, task_type.steps, self.scratch, self.stop),
            self.recorder,
            stop=self.stop,
            grace=lambda: self.grace,
            result_limit=result_limit,
        )


class ThreadStand:
    """The same with threads."""

    def __init__(self, size: int, scratch: Path) -> None:
        self.pool = Threads(size)
        self.recorder = Recorder()
        self.stop = asyncio.Event()
        self._scratch = scratch

    async def run(self, handler: Blocking, payload: Any = None) -> Any:
        registry = Registry()
        registry.task("threaded")(handler)
        claimed = claim("threaded", payload)
        facts = Facts(claimed, (), self._scratch, self.stop)
        loop = asyncio.get_running_loop()
        return await run_in_thread(self.pool, registry.get("threaded"), claimed, payload, facts, self.recorder, loop)


@asynccontextmanager
async def closing(children: Children) -> AsyncIterator[Children]:
    try:
        yield children
    finally:
        await children.close()


async def appearing(path: Path, within: float = 60) -> Any:
    """What a handler wrote into this file, once it has."""
    assert await eventually(path.exists, within)
    return orjson.loads(path.read_bytes() or b"null")


async def eventually(condition: Callable[[], bool], within: float = 60) -> bool:
    until = time.monotonic() + within
    while not condition():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.01)
    return True


def is_gone(pid: int) -> bool:
    """Whether the process runs no more; whoever is its parent by now may not have waited for it yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def belongings() -> tuple[int, int]:
    """How many descriptors are open here, and how many processes are ours, zombies included."""
    return len(list(Path("/proc/self/fd").iterdir())), len(psutil.Process().children())

"""What a handler receives beside its payload: the owner of the task, and verbs to report progress.

``async def`` handlers get a ``TaskContext``, whose verbs are awaited; ``def`` handlers get a ``BlockingTaskContext``
with the same verbs. Both speak to a ``Reporter``; in a child process that is a pipe to the worker.
"""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from headrace.connections import UnknownConnection, is_asynchronous
from headrace.tasks.errors import Fatal, TaskCanceled
from headrace.tasks.model import Claimed


class Reporter(Protocol):
    """Writes for the holder of a lease; each verb raises ``LeaseLost`` when it is no longer ours."""

    async def progress(self, claimed: Claimed, percent: int, eta_seconds: int | None) -> None: ...

    async def extend(self, claimed: Claimed, seconds: int) -> None: ...

    async def log(self, claimed: Claimed, message: str) -> None: ...

    async def used(self, claimed: Claimed, units: int) -> None: ...

    async def begin_step(self, claimed: Claimed, name: str) -> "StepRecord": ...

    async def end_step(self, claimed: Claimed, name: str, *, succeeded: bool, detail: Any, millis: int) -> None: ...

    async def finish_in(self, claimed: Claimed, connection: Any, result: Any) -> None: ...

    async def save_result(self, claimed: Claimed, path: str, name: str, mime_type: str | None) -> None: ...


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The state of a step before it runs: ``done`` in an earlier attempt, and its note from then."""

    name: str
    done: bool
    detail: Any = None


@dataclass(slots=True)
class Step:
    """A step under way. ``if not step.done:`` guards the work; ``step.detail`` is stored with it, and given back when a
    later attempt finds the step done.

    >>> async with context.step("upload") as step:
    ...     if not step.done:
    ...         step.detail = {"address": await upload(file)}
    ...     address = step.detail["address"]
    """

    name: str
    """As it was entered."""
    done: bool
    """Whether an earlier attempt finished it."""
    detail: Any = None
    """JSON of your own, kept with the step."""


@dataclass(slots=True)
class Facts:
    """What both contexts share."""

    claimed: Claimed
    steps: tuple[str, ...]
    scratch_root: Path
    cancel: asyncio.Event | Any = field(repr=False)  # something with is_set()
    scratch_made: bool = False
    descriptors: tuple[int, ...] = ()  # of open files that a child process is handed


class _Common:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @property
    def task_id(self) -> str:
        """The task's id, ``tsk_…``: the same in every attempt."""
        return self._facts.claimed.task_id

    @property
    def user_id(self) -> str:
        """Whose task it is."""
        return self._facts.claimed.user_id

    @property
    def attempt(self) -> int:
        """1 for the first. With the task's id it names this run, for effects elsewhere that must happen once."""
        return self._facts.claimed.attempt

    @property
    def trace_id(self) -> str | None:
        """The trace id of the submission, to follow it through the logs of several programs."""
        return self._facts.claimed.trace_id

    @property
    def canceled(self) -> bool:
        """Whether this task should stop: it was canceled, its time is over, or the worker shuts down."""
        return bool(self._facts.cancel.is_set())

    def check_canceled(self) -> None:
        """Raise ``TaskCanceled`` if the task should stop: call it between pieces of work."""
        if self.canceled:
            raise TaskCanceled

    @property
    def scratch(self) -> Path:
        """A folder of this task's own; it stays from one attempt to the next and goes when the task is over."""
        folder = self._facts.scratch_root / self._facts.claimed.task_id
        folder.mkdir(parents=True, exist_ok=True)
        self._facts.scratch_made = True
        return folder

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Of the open files that were handed to this run. They are closed when it is over."""
        return self._facts.descriptors

    def _check_step(self, name: str) -> None:
        if self._facts.steps and name not in self._facts.steps:
            raise Fatal(f"{name!r} is not a step of this task type; declared are: {', '.join(self._facts.steps)}.")


class TaskContext(_Common):
    """What an ``async def`` handler receives beside the payload: the owner of the task, and verbs to report progress.

    Every verb raises ``LeaseLost`` when the task is no longer this worker's: let it be raised.
    """

    def __init__(self, facts: Facts, reporter: Reporter) -> None:
        super().__init__(facts)
        self._reporter = reporter

    async def progress(self, percent: float, *, eta_seconds: float | None = None) -> None:
        """Report the progress, 0 to 100, and the remaining time."""
        await self._reporter.progress(self._facts.claimed, *_progress(percent, eta_seconds))

    async def extend(self, seconds: int) -> None:
        """Ask for more time than the run was given; ``ExtensionRefused`` beyond what its schedule allows."""
        await self._reporter.extend(self._facts.claimed, seconds)

    async def log(self, message: str) -> None:
        """Add a line to the task's log."""
        await self._reporter.log(self._facts.claimed, message)

    async def used(self, units: int) -> None:
        """Report how many of the held units the task has used: these are charged if it succeeds, and the rest is
        returned. Without a report all are charged; a failed task is charged nothing. The last report counts.

        ``UnitsRefused`` for more than are held, or for a task that costs nothing.
        """
        await self._reporter.used(self._facts.claimed, units)

    @asynccontextmanager
    async def step(self, name: str) -> AsyncIterator[Step]:
        """One step, recorded with its outcome and duration; ``step.done`` if an earlier attempt finished it."""
        self._check_step(name)
        record = await self._reporter.begin_step(self._facts.claimed, name)
        step = Step(name, record.done, record.detail)
        if step.done:
            yield step
            return
        started, succeeded = time.monotonic(), False
        try:
            yield step
            succeeded = True
        finally:
            millis = round((time.monotonic() - started) * 1000)
            await self._reporter.end_step(
                self._facts.claimed, name, succeeded=succeeded, detail=step.detail, millis=millis
            )

    async def finish_in(self, connection: Any, result: Any = None) -> None:
        """End the task in your own transaction: what you wrote there and the end are committed together, or neither.

        ``connection`` has an open transaction and is one of asyncpg, psycopg 3 (async or not) or SQLAlchemy (async or
        not, or a session); ``UnknownConnection`` and ``NoTransaction`` otherwise. ``LeaseLost`` if the task is no
        longer this worker's; then roll back, for another attempt is under way.
        """
        await self._reporter.finish_in(self._facts.claimed, connection, result)

    async def save_result(
        self, path: str | PathLike[str], *, name: str | None = None, mime_type: str | None = None
    ) -> None:
        """Give the task's owner a file: a copy of ``path`` becomes the task's result file when the task succeeds.

        The owner downloads it at ``/v1/tasks/{id}/result/content``. ``name`` is the name of the download, by default
        the file's own; ``mime_type`` its type, by default the type of the name's ending. A task has one result file:
        the last call counts. If the attempt fails, or the task is no longer this worker's, the file is removed.

        ``BadResult`` if there is no readable file at ``path``. With ``isolation="process"`` the file must be in
        ``context.scratch``.
        """
        await self._reporter.save_result(self._facts.claimed, *_result_file(path, name), mime_type)


class BlockingReporter(Protocol):
    """``Reporter`` for code that is not async."""

    def call(self, verb: str, *args: Any, **kwargs: Any) -> Any: ...


class BlockingTaskContext(_Common):
    """``TaskContext`` for ``def`` handlers, in a thread or in a child process: the same verbs without ``await``."""

    def __init__(self, facts: Facts, reporter: BlockingReporter) -> None:
        super().__init__(facts)
        self._reporter = reporter

    def progress(self, percent: float, *, eta_seconds: float | None = None) -> None:
        """Report the progress, 0 to 100, and the remaining time."""
        self._reporter.call("progress", *_progress(percent, eta_seconds))

    def extend(self, seconds: int) -> None:
        """Ask for more time than the run was given; ``ExtensionRefused`` beyond what its schedule allows."""
        self._reporter.call("extend", seconds)

    def log(self, message: str) -> None:
        """Add a line to the task's log."""
        self._reporter.call("log", message)

    def used(self, units: int) -> None:
        """Report how many of the held units the task has used; see ``TaskContext.used``."""
        self._reporter.call("used", units)

    def finish_in(self, connection: Any, result: Any = None) -> None:
        """End the task in your own transaction, on a blocking connection of psycopg 3 or SQLAlchemy.

        See ``TaskContext.finish_in``. Not in a child process, which has no connection of the worker's.
        """
        if is_asynchronous(connection):
            raise UnknownConnection("This connection is asynchronous: in a def handler it must be a blocking one.")
        self._reporter.call("finish_in", connection, result)

    def save_result(self, path: str | PathLike[str], *, name: str | None = None, mime_type: str | None = None) -> None:
        """Give the task's owner a file; see ``TaskContext.save_result``."""
        self._reporter.call("save_result", *_result_file(path, name), mime_type)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """One step, recorded with its outcome and duration; ``step.done`` if an earlier attempt finished it."""
        self._check_step(name)
        record = self._reporter.call("begin_step", name)
        step = Step(name, record.done, record.detail)
        if step.done:
            yield step
            return
        started, succeeded = time.monotonic(), False
        try:
            yield step
            succeeded = True
        finally:
            millis = round((time.monotonic() - started) * 1000)
            self._reporter.call("end_step", name, succeeded=succeeded, detail=step.detail, millis=millis)


def forget_scratch(root: Path, task_id: str) -> None:
    """Remove a task's scratch folder, if it has one."""
    shutil.rmtree(root / task_id, ignore_errors=True)


def _result_file(path: str | PathLike[str], name: str | None) -> tuple[str, str]:
    # Absolute: the worker, which reads it, may have another current folder than a child process.
    file = Path(path).absolute()
    return str(file), name or file.name


def _progress(percent: float, eta_seconds: float | None) -> tuple[int, int | None]:
    eta = None if eta_seconds is None else max(0, round(eta_seconds))
    return min(100, max(0, round(percent))), eta

"""Handlers in child processes without a worker or a database: for commands, and for looking into files."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from headrace.tasks.context import Facts, Reporter, StepRecord
from headrace.tasks.errors import Fatal
from headrace.tasks.isolation.children import Children
from headrace.tasks.model import Claimed
from headrace.tasks.registry import TaskType

_RESULT_LIMIT = 16 * 1024 * 1024


def run_single(task_type: TaskType, payload: Any, *, on_progress: Callable[[int], object] | None = None) -> Any:
    """Run the handler of a process-isolated type and give its result as plain JSON values.

    Raises what ``Children.run`` raises. An exception that a signal raises in here (Ctrl-C) kills the child with
    everything it started. What the child prints is shown only if it crashes.
    """
    assert task_type.isolation == "process"
    return asyncio.run(_run(task_type, payload, _ProgressOnly(on_progress)))


async def _run(task_type: TaskType, payload: Any, reporter: "_ProgressOnly") -> Any:
    async with Standalone(size=1) as processes:
        return await processes.run(task_type, payload, reporter=reporter)


class Standalone:
    """Up to ``size`` warm child processes that run handlers without a worker or a database."""

    def __init__(self, *, size: int, folder: Path | None = None, spare: int = 0) -> None:
        # The current folder is no place for modules here: it holds a user's files.
        path = [entry for entry in sys.path if entry]
        self._children = Children(size=size, path=path, forward=lambda _: None, folder=folder, spare=spare)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._children.close()

    @property
    def pids(self) -> frozenset[int]:
        """The processes that are there, for metrics and tests."""
        return self._children.pids

    async def run(
        self,
        task_type: TaskType,
        payload: Any,
        *,
        descriptors: tuple[int, ...] = (),
        result_limit: int = _RESULT_LIMIT,
        reporter: Reporter | None = None,
        tenant: str | None = None,
    ) -> Any:
        """The handler's result as plain JSON values. It receives ``descriptors``, which the caller must close.
        A child that has served a ``tenant`` serves no other.

        Raises what ``Children.run`` raises. Canceling this call kills the child at once.
        """
        claimed = Claimed(0, "single", 1, task_type.name, "", payload, 0, 1, None, None, datetime.now(UTC))
        stop = asyncio.Event()
        # A child that can open no file needs no folder; making and removing one takes longer than an inspection.
        scratch_of = TemporaryDirectory(prefix="headrace-") if task_type.files else nullcontext("/nowhere")
        with scratch_of as scratch:
            return await self._children.run(
                task_type,
                claimed,
                Facts(claimed, task_type.steps, Path(scratch), stop, descriptors=descriptors),
                reporter or Unreported(),
                stop=stop,
                grace=timedelta,
                result_limit=result_limit,
                tenant=tenant,
            )

    def forget(self, tenant: str) -> None:
        """This tenant has ended: its children are retired, and fresh ones start in their place."""
        self._children.forget(tenant)


class Unreported:
    """A ``Reporter`` without a task to write to: it discards all reports."""

    async def progress(self, _claimed: Claimed, percent: int, eta_seconds: int | None) -> None:
        pass

    async def extend(self, _claimed: Claimed, _seconds: int) -> None:
        pass

    async def log(self, _claimed: Claimed, _message: str) -> None:
        pass

    async def used(self, _claimed: Claimed, _units: int) -> None:
        pass

    async def begin_step(self, _claimed: Claimed, name: str) -> StepRecord:
        return StepRecord(name, done=False)

    async def end_step(self, _claimed: Claimed, _name: str, *, succeeded: bool, detail: Any, millis: int) -> None:
        pass

    async def finish_in(self, _claimed: Claimed, _connection: Any, _result: Any) -> None:
        raise Fatal("There is no task to finish in a transaction.")

    async def save_result(self, _claimed: Claimed, _path: str, _name: str, _mime_type: str | None) -> None:
        raise Fatal("There is no task whose owner could get a file.")


class _ProgressOnly(Unreported):
    """For who sits in front of it."""

    def __init__(self, on_progress: Callable[[int], object] | None) -> None:
        self._on_progress = on_progress

    async def progress(self, _claimed: Claimed, percent: int, eta_seconds: int | None) -> None:  # noqa: ARG002
        if self._on_progress is not None:
            self._on_progress(percent)

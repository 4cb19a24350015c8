"""One handler in one child process, without a worker or a database: for commands."""

import asyncio
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headrace.tasks.context import Facts, StepRecord
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
    claimed = Claimed(0, "single", 1, task_type.name, "", payload, 0, 1, None, None, datetime.now(UTC))
    stop = asyncio.Event()
    # The current folder is no place for modules here: it holds what somebody works on.
    children = Children(size=1, path=[entry for entry in sys.path if entry], forward=lambda _: None)
    with TemporaryDirectory(prefix="headrace-") as scratch:
        try:
            return await children.run(
                task_type,
                claimed,
                Facts(claimed, task_type.steps, Path(scratch), stop),
                reporter,
                stop=stop,
                grace=timedelta(0),
                result_limit=_RESULT_LIMIT,
            )
        finally:
            await children.close()


class _ProgressOnly:
    """A ``Reporter`` for who sits in front of it: there is no task to write to."""

    def __init__(self, on_progress: Callable[[int], object] | None) -> None:
        self._on_progress = on_progress

    async def progress(self, _claimed: Claimed, percent: int, _eta_seconds: int | None) -> None:
        if self._on_progress is not None:
            self._on_progress(percent)

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

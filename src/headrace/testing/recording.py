"""Records what a handler reports, for tests."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from headrace.assets.content import mime_type_of_name
from headrace.assets.model import clean_name
from headrace.tasks import storable
from headrace.tasks.context import StepRecord
from headrace.tasks.errors import ExtensionRefused
from headrace.tasks.model import Claimed
from headrace.tasks.units import check_used
from headrace.tasks.worker.result_files import opened

_DETAIL_LIMIT = 256 * 1024


@dataclass(slots=True)
class RanStep:
    """A step of a handler."""

    name: str
    """The name of the step."""
    done: bool
    """Whether an earlier attempt finished it."""
    succeeded: bool
    """Whether it is finished now."""
    detail: Any = None
    """Its stored detail, after a JSON round trip."""


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file passed to ``context.save_result``."""

    name: str
    """The file name for the task's owner."""
    mime_type: str
    """Its type."""
    content: bytes
    """Its content at the time of the call."""


class Recorder:
    """A ``Reporter`` without a database: it records reports, and refuses what a worker would refuse."""

    def __init__(self, *, held: int | None, done: Mapping[str, Any]) -> None:
        self._held = held
        self._done = done
        self.progressed: list[int] = []
        self.lines: list[str] = []
        self.steps: list[RanStep] = []
        self.units: int | None = None
        self.ended_in: tuple[Any, Any] | None = None
        self.saved: SavedFile | None = None

    async def progress(self, _claimed: Claimed, percent: int, _eta_seconds: int | None) -> None:
        self.progressed.append(percent)

    async def extend(self, claimed: Claimed, seconds: int) -> None:
        left = claimed.extension_seconds or 0
        if claimed.timeout_seconds is None:
            return
        if not 0 < seconds <= left:
            raise ExtensionRefused(f"This run may be extended by {left} s more, not by {seconds} s.", left=left)
        claimed.extension_seconds = left - seconds

    async def log(self, _claimed: Claimed, message: str) -> None:
        self.lines.append(message)

    async def used(self, claimed: Claimed, units: int) -> None:
        check_used(claimed.task_type, units, self._held)
        self.units = units

    async def begin_step(self, _claimed: Claimed, name: str) -> StepRecord:
        done = name in self._done
        self.steps.append(RanStep(name, done, succeeded=done, detail=self._done.get(name)))
        return StepRecord(name, done, self._done.get(name))

    async def end_step(self, _claimed: Claimed, name: str, *, succeeded: bool, detail: Any, millis: int) -> None:  # noqa: ARG002
        step = next(step for step in reversed(self.steps) if step.name == name)
        step.succeeded = succeeded
        step.detail = as_stored(detail)

    async def save_result(self, _claimed: Claimed, path: str, name: str, mime_type: str | None) -> None:
        with opened(path) as file, os.fdopen(os.dup(file), "rb") as source:
            self.saved = SavedFile(clean_name(name), mime_type or mime_type_of_name(name), source.read())

    async def finish_in(self, _claimed: Claimed, connection: Any, result: Any) -> None:
        self.ended_in = connection, result


def as_stored(value: Any) -> Any:
    """The value after a round trip through the database; ``ValueError`` if it cannot be stored."""
    return orjson.loads(bytes(storable.encode(value, limit=_DETAIL_LIMIT)))

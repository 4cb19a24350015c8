"""Looking into files, and making previews: always in a child, which is handed the file open and sees no other."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import orjson
from pydantic import TypeAdapter, ValidationError

from headrace import extras, logs
from headrace.assets.fair_queue import FairQueue
from headrace.assets.inspection import handlers
from headrace.assets.inspection.errors import (
    REFUSALS,
    FileEmpty,
    FileMismatch,
    FileRefused,
    FileTooLarge,
    InspectionBusy,
    InspectionCrashed,
    InspectionMemory,
    InspectionStopped,
    InspectionTimeout,
)
from headrace.assets.inspection.model import Facts, FileLimits, MediaType
from headrace.tasks.errors import BadResult, Fatal, TaskCanceled
from headrace.tasks.execution import ProcessLimits
from headrace.tasks.isolation.errors import CrashCause, Crashed, HandlerFailed
from headrace.tasks.isolation.single import Standalone
from headrace.tasks.registry import Registry, TaskType

log = logs.get(__name__)

# Facts are a page of JSON. A child that sends more is compromised by the file.
_RESULT_LIMIT = 64 * 1024
_FACTS = TypeAdapter(Facts)
_MAX_INTEGER = 2**31  # what the database takes
_OFFICE = ProcessLimits(
    memory_bytes=4 * 1024**3, cpu_seconds=120, file_bytes=512 * 1024**2, open_files=512, wall_seconds=120
)
_CAUSES: dict[CrashCause, type[FileRefused]] = {
    CrashCause.TIME: InspectionTimeout,
    CrashCause.MEMORY: InspectionMemory,
    CrashCause.ITSELF: InspectionCrashed,
}


@dataclass(frozen=True, slots=True)
class InspectorConfig:
    """How many children there are, and what each may use for one file.

    ``memory_bytes`` is address space on top of the loaded libraries: a WebP of 100 million pixels takes 1.2 GB of it.
    """

    processes: int = 2
    memory_bytes: int = 2 * 1024**3
    cpu_seconds: int = 6  # per file: a WebP of 100 million pixels takes 4
    drawing_cpu_seconds: int = 10  # to draw a preview or a page, or to write the file without its location
    wall_seconds: int = 60
    output_bytes: int = 512 * 1024**2
    max_wait: timedelta = timedelta(seconds=10)  # for a turn


class Inspector:
    """Looks into files. Belongs to the loop it is first used on.

    Children start when they are first needed, or with ``prepare``, and stay; one that crashed or was killed is
    replaced.
    """

    def __init__(self, config: InspectorConfig | None = None) -> None:
        self._config = config or InspectorConfig()
        self._processes = Standalone(size=self._config.processes)
        self._office = Standalone(size=1)  # LibreOffice takes minutes: files are inspected meanwhile
        max_wait = self._config.max_wait
        self._turns = FairQueue(
            self._config.processes, max_wait=max_wait, busy=lambda: InspectionBusy(retry_after=max_wait)
        )
        self._types = _types(self._config)
        self._closed = False
        self._complete = False  # whether all libraries are installed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        await asyncio.gather(self._processes.__aexit__(), self._office.__aexit__())

    @property
    def pids(self) -> frozenset[int]:
        """The children that are there, for metrics and tests."""
        return self._processes.pids | self._office.pids

    async def prepare(self) -> None:
        """Start the children and load their libraries, so that the first file need not wait."""
        await asyncio.gather(*(self._run(handlers.warm_up, {}, (), None) for _ in range(self._config.processes)))

    async def inspect(
        self,
        path: Path,
        *,
        limits: FileLimits,
        expected: MediaType | None = None,
        tenant: str | None = None,
        password: str | None = None,
    ) -> Facts:
        """The facts of the file; a ``FileRefused`` gives the reason to refuse it. ``expected`` is its declared kind.

        ``tenant`` is its owner: a child that has seen files of one sees none of another. Of a locked PDF a
        ``password`` shows its pages; ``FileEncrypted`` if it does not open it.
        """
        with _opened(path) as file:
            size = os.fstat(file).st_size
            if size == 0:
                raise FileEmpty
            if limits.max_bytes is not None and size > limits.max_bytes:
                raise FileTooLarge(size_bytes=size, max_bytes=limits.max_bytes)
            facts = _facts(await self._run(handlers.inspect, asdict(limits) | {"password": password}, (file,), tenant))
        if expected is not None and facts.media_type is not expected:
            raise FileMismatch(
                f"This is a file of the kind {facts.media_type}, not {expected}: send it under its own kind.",
                media_type=facts.media_type,
                expected=expected,
            )
        return facts

    async def preview(
        self, path: Path, facts: Facts, target: Path, *, longest_side: int, tenant: str | None = None
    ) -> None:
        """Write a small picture of the file to ``target``, as WebP, upright, no side longer than ``longest_side``.

        A picture, a video's first frame that shows something, the first page, the slide that a presentation keeps as
        its thumbnail; where there is none, a sheet with the kind of file on it. ``target`` grows while it is written:
        let it be a draft's name. It is gone if this fails.
        """
        assert facts.format is not None
        with _opened(path) as file, _written(target) as output:
            order = {"format": facts.format, "longest_side": longest_side}
            await self._run(handlers.preview, order, (file, output), tenant)

    async def draw_page(
        self,
        path: Path,
        number: int,
        target: Path,
        *,
        longest_side: int,
        tenant: str | None = None,
        owner: str | None = None,
    ) -> bool:
        """Write a page of a PDF to ``target``, as WebP; False if it has no such page. ``owner`` is whose turn it takes
        where the tenant is not a user."""
        with _opened(path) as file, _written(target) as output:
            order = {"number": number, "longest_side": longest_side}
            await self._run(handlers.draw_page, order, (file, output), tenant, owner)
            return os.fstat(output).st_size > 0

    async def as_pdf(self, path: Path, kind: str, target: Path, *, folder: Path, tenant: str | None = None) -> bool:
        """Write slides to ``target`` as a PDF, a page for each, by way of ``folder``; False where there is no
        LibreOffice."""
        order = {"source": str(path), "kind": kind, "target": str(target), "folder": str(folder)}
        return bool((await self._run(handlers.as_pdf, order, (), tenant))["made"])

    async def strip_location(self, path: Path, target: Path, *, tenant: str | None = None) -> bool:
        """Write the file without the place where it was taken to ``target``, every pixel as it was.

        False, and nothing is written, if it names no place. Pictures, MP4 and MOV; ``FileUnsupported`` for others.
        """
        with _opened(path) as file, _written(target) as output:
            answer = await self._run(handlers.strip_location, {}, (file, output), tenant)
            stripped = bool(answer["stripped"])
        if not stripped:
            await asyncio.to_thread(target.unlink, missing_ok=True)
        return stripped

    async def _run(
        self,
        handler: Any,
        order: dict[str, Any],
        files: tuple[int, ...],
        tenant: str | None,
        owner: str | None = None,
    ) -> Any:
        """Run a handler in a child when it is its user's turn; ``InspectionBusy`` if that does not come soon."""
        if not self._complete:  # asked until it is so: it takes longer than many a file
            _require_libraries()
            self._complete = True
        task_type = self._types[handler.__name__]
        if handler is handlers.as_pdf:  # the caller has waited for its turn at LibreOffice
            return await self._in_child(self._office, task_type, order, files, tenant)
        async with self._turns.turn(owner or tenant):
            if self._closed:
                raise InspectionStopped
            return await self._in_child(self._processes, task_type, order, files, tenant)

    async def _in_child(
        self,
        processes: Standalone,
        task_type: TaskType,
        order: dict[str, Any],
        files: tuple[int, ...],
        tenant: str | None,
    ) -> Any:
        try:
            return await processes.run(task_type, order, descriptors=files, result_limit=_RESULT_LIMIT, tenant=tenant)
        except Fatal as exc:
            raise _refusal(exc) from None
        except Crashed as exc:
            log.warning("inspection.crashed", verb=task_type.name, cause=exc.cause, error=_first_line(exc.message))
            raise _CAUSES[exc.cause] from exc
        except (HandlerFailed, BadResult) as exc:
            log.warning("inspection.failed", verb=task_type.name, error=_first_line(exc.message))
            raise InspectionCrashed from exc
        except TaskCanceled as exc:  # closed while the file waited or was read: not the file's fault
            raise InspectionStopped from exc


def _require_libraries() -> None:
    """Word ``ExtraMissing`` for the sender of a file, who cannot install anything on the server."""
    missing = next((name for name in handlers.LIBRARIES if not extras.is_installed(name)), None)
    if missing is not None:
        raise extras.ExtraMissing(
            f"The server cannot inspect files: it lacks the extra `files` ({missing} is not installed). "
            f"Its operator runs {extras.remedy('files')}."
        )


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _types(config: InspectorConfig) -> dict[str, TaskType]:
    registry, types = Registry(), {}
    limits = ProcessLimits(
        memory_bytes=config.memory_bytes,
        cpu_seconds=config.cpu_seconds,
        file_bytes=config.output_bytes,
        open_files=64,
        wall_seconds=config.wall_seconds,
    )
    drawing = replace(limits, cpu_seconds=config.drawing_cpu_seconds)
    for handler, most in (
        (handlers.warm_up, drawing),
        (handlers.inspect, limits),
        (handlers.preview, drawing),
        (handlers.draw_page, drawing),
        (handlers.strip_location, drawing),
    ):
        name = f"headrace.file_{handler.__name__}"
        registry.task(name, isolation="process", limits=most, network=False, files=False)(handler)
        types[handler.__name__] = registry.get(name)
    # It starts LibreOffice, which talks to itself through a socket, and takes everything else away from it.
    registry.task("headrace.file_as_pdf", isolation="process", limits=_OFFICE)(handlers.as_pdf)
    types[handlers.as_pdf.__name__] = registry.get("headrace.file_as_pdf")
    return types


def _refusal(exc: Fatal) -> FileRefused:
    """A child's error. It is trusted as far as it names a known code."""
    details = dict(exc.details)
    kind = REFUSALS.get(str(details.pop("code", "")), InspectionCrashed)
    numbers = {name: value for name, value in details.items() if isinstance(value, int | str)}
    return kind(exc.message[:500] or None, **numbers)


def _facts(answer: Any) -> Facts:
    """A child's facts, if they have the right form: it has read an untrusted file, and may be compromised."""
    try:
        facts = _FACTS.validate_python(answer)
    except ValidationError as exc:
        raise InspectionCrashed from exc
    numbers = (facts.width, facts.height, facts.pages, facts.frames, facts.duration_ms, facts.orientation)
    sensible = all(number is None or 0 <= number < _MAX_INTEGER for number in numbers)
    kind = facts.format
    fits = kind is not None and facts.media_type is kind.media_type and facts.mime_type in kind.mime_types
    if not (sensible and fits) or b"\\u0000" in orjson.dumps(facts.details):
        raise InspectionCrashed
    return facts


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _written(target: Path) -> Iterator[int]:
    """Open for the child to write to; gone if it fails."""
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)

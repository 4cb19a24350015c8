"""Removals in child processes of little power: without network, secrets and much memory; killed with their parent.

The service runs one stage in a child, so that another machine can go on after it; a command runs all of them. What is
wrong with a file will not be better at the next attempt, so handlers end with ``Fatal``.
"""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from headrace import extras
from headrace.errors import HeadraceError
from headrace.removal import media, paths, stages
from headrace.removal.documents.slides import legacy
from headrace.removal.errors import (
    CandidateUnknown,
    ClipUnreadable,
    ConverterMissing,
    DocumentEncrypted,
    DocumentSigned,
    DocumentUnreadable,
    EncoderMissing,
    HintUnusable,
    ModelDamaged,
    PictureUnreadable,
    RemovalMissing,
    TargetUnusable,
)
from headrace.removal.images.shared_mark import MIN_VIEWS
from headrace.removal.order import Order, StageOrder
from headrace.removal.report import Report
from headrace.tasks.context import BlockingTaskContext
from headrace.tasks.errors import Fatal, LeaseLost
from headrace.tasks.execution import ProcessLimits
from headrace.tasks.isolation.errors import Crashed, HandlerFailed, ReportFailed
from headrace.tasks.isolation.preloading import preloads
from headrace.tasks.isolation.single import run_single
from headrace.tasks.registry import TaskType

GIGABYTE_BYTES = 1024**3
# By themselves these libraries reserve address space for as many threads as the machine has cores: at 16, a gigabyte.
# SVT-AV1 chatters.
ENVIRONMENT = ("OPENBLAS_NUM_THREADS=2", "OPENCV_FOR_THREADS_NUM=2", "SVT_LOG=1")
# Pictures of 25 megapixels, the largest that are worked on at their full size, need most: under 2 GB. Address space
# counts what is only reserved, too, and comes to 3. Each two threads more look at one more tile at a time.
IMAGE_MEMORY_BYTES, TILE_MEMORY_BYTES = 4 * GIGABYTE_BYTES, GIGABYTE_BYTES
_IMAGE_LIMITS = ProcessLimits(
    memory_bytes=IMAGE_MEMORY_BYTES, cpu_seconds=600, file_bytes=4 * GIGABYTE_BYTES, open_files=256, wall_seconds=3600
)
# A page of five million instructions, the most that is read, needs two gigabytes.
_DOCUMENT_LIMITS = replace(_IMAGE_LIMITS, memory_bytes=3 * GIGABYTE_BYTES, wall_seconds=1800)
# Encoders of 4K reserve most. A clip takes as long as it is long.
_CLIP_LIMITS = ProcessLimits(
    memory_bytes=8 * GIGABYTE_BYTES,
    cpu_seconds=12 * 3600,
    file_bytes=32 * GIGABYTE_BYTES,
    open_files=256,
    wall_seconds=12 * 3600,
)

_IMAGE_LIBRARIES = ("cv2", "numpy", "onnxruntime", "PIL")
_LIBRARIES = {
    "IMAGE": _IMAGE_LIBRARIES,
    "PDF": ("lxml", "numpy", "pikepdf", "PIL", "pypdfium2"),
    "PPT": ("lxml", "numpy", "pikepdf", "PIL", "pypdfium2"),
    "VIDEO": ("av", *_IMAGE_LIBRARIES),
}
_UNREADABLE: dict[str, type[HeadraceError]] = {
    "IMAGE": PictureUnreadable, "PDF": DocumentUnreadable, "PPT": DocumentUnreadable, "VIDEO": ClipUnreadable
}  # fmt: skip
_ERRORS: dict[str, type[HeadraceError]] = {
    each.code: each
    for each in (
        CandidateUnknown, ClipUnreadable, ConverterMissing, DocumentEncrypted, DocumentSigned, DocumentUnreadable,
        EncoderMissing, HintUnusable, ModelDamaged, PictureUnreadable, TargetUnusable,
    )
}  # fmt: skip
_STAGE_ORDER = TypeAdapter(StageOrder)
_ORDER, _ORDERS = TypeAdapter(Order), TypeAdapter(list[Order])
_REPORT, _REPORTS = TypeAdapter(Report), TypeAdapter(list[Report | None])


@dataclass(frozen=True, slots=True)
class Conversion:
    """Slides from one file to another, by its ending."""

    source: str
    result: str


def stage_types(limits: ProcessLimits) -> tuple[TaskType, TaskType]:
    """The children of the service: for one stage, and for the conversion of old slides."""
    stage = TaskType(
        "headrace.removal_stage", run_stage, "process", limits=limits, environment=ENVIRONMENT, network=False,
        files=False,
    )  # fmt: skip
    # It starts LibreOffice, which talks to itself through a socket, and takes everything else away from it.
    return stage, TaskType("headrace.removal_conversion", run_conversion, "process", limits=limits)


def order_type(order: Order) -> TaskType:
    """The child of a command: all stages of one order."""
    # LibreOffice alone does not start without sockets; its network is taken away where it is started.
    sockets = media.document_of(order.source) == "ppt"
    limits = limits_of(order.media or media.media_of(order.source), order.threads)
    return TaskType("headrace.removal", run_order, "process", limits=limits, environment=ENVIRONMENT, network=sockets)


def limits_of(kind: str, threads: int) -> ProcessLimits:
    """What the child of a command may use."""
    if kind in media.DOCUMENTS:
        return _DOCUMENT_LIMITS
    if kind == "VIDEO":
        return _CLIP_LIMITS
    more = max(0, threads // 2 - 1)
    return replace(_IMAGE_LIMITS, memory_bytes=IMAGE_MEMORY_BYTES + TILE_MEMORY_BYTES * more)


def payload_of(order: StageOrder) -> Any:
    """What a child of the service receives."""
    return _STAGE_ORDER.dump_python(order, mode="json", exclude={"memory"})


def _load_libraries() -> None:
    """Once in each child: what all media need, outside of a task's time and memory."""
    import cv2
    import numpy as np
    from PIL import Image

    Image.init()
    _ = cv2, np


@preloads(_load_libraries)
def run_stage(context: BlockingTaskContext, order: dict[str, Any]) -> dict[str, Any]:
    """The handler of one stage. A damaged installation may be mended by the next attempt."""
    parsed = _STAGE_ORDER.validate_python(order)
    with _fatal(parsed.folder, but=(ModelDamaged, TargetUnusable)):
        report = stages.run(parsed, context.progress)
        return {**asdict(report), "candidates": [each.as_json() for each in report.candidates]}


def run_conversion(_context: BlockingTaskContext, order: Conversion) -> None:
    """Turn slides of the old kind into the new one, or back. This child has the worker's files: it reads neither
    presentation, LibreOffice does, which has nothing but a folder of its own."""
    with _fatal(str(Path(order.result).parent)):
        legacy.convert(order.source, order.result)


def run_order(context: BlockingTaskContext, order: Order) -> Report:
    """The handler of a command's order."""
    from headrace.removal.local import process

    with _fatal(str(context.scratch), source=order.source):
        return process(order, context.progress, lambda: context.scratch)


def run_batch(context: BlockingTaskContext, orders: list[Order]) -> list[Report | None]:
    """The handler of a command's pictures that may have the same mark."""
    from headrace.removal.local import process_batch

    with _fatal(str(context.scratch)):
        return process_batch(orders, context.progress, lambda: context.scratch)


@contextlib.contextmanager
def _fatal(folder: str, *, source: str = "The file", but: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
    try:
        yield
    except (ReportFailed, LeaseLost):  # these say nothing about the file
        raise
    except but:
        raise
    except HeadraceError as exc:
        raise Fatal(exc.message.replace(f"{folder}/", ""), code=exc.code) from exc
    except MemoryError as exc:  # it would take as much the next time
        raise Fatal(f"{source} exceeds the memory limit.", code=PictureUnreadable.code) from exc


def carry_out(order: Order, *, on_progress: Callable[[int], object] | None = None) -> Report:
    """What was found in the file of a command, and what was done.

    What can be known to be wrong with the files is said before anything is computed, and results appear whole or not
    at all, also when this is interrupted.
    """
    kind = order.media or media.media_of(order.source)
    order = replace(order, media=kind, comparison=None if kind == "PPT" else order.comparison)  # slides are not drawn
    _require_libraries(kind)
    _require_places(order)
    with contextlib.ExitStack() as drafts:
        drafted = _drafted(order, drafts)
        try:
            found = run_single(order_type(order), _ORDER.dump_python(drafted, mode="json"), on_progress=on_progress)
        except Fatal as exc:
            raise _known(exc, kind)(_with_real_names(exc.message, drafted, order)) from None
        except (Crashed, HandlerFailed) as exc:
            raise _UNREADABLE[kind](f"{order.source} could not be worked on: {exc.message.splitlines()[0]}") from exc
        return _REPORT.validate_python(found)


def carry_out_batch(orders: list[Order], *, on_progress: Callable[[int], object] | None = None) -> list[Report | None]:
    """A report for each picture that the others tell the mark of, None for the rest. Results appear whole or not."""
    usable = [number for number, order in enumerate(orders) if _is_usable(order)]
    reports: list[Report | None] = [None] * len(orders)
    if len(usable) < MIN_VIEWS:
        return reports
    _require_libraries("IMAGE")
    batch_type = replace(order_type(orders[0]), name="headrace.removal_batch", handler=run_batch)
    with contextlib.ExitStack() as drafts:
        drafted = [_drafted(replace(orders[number], media="IMAGE"), drafts) for number in usable]
        try:
            found = run_single(batch_type, _ORDERS.dump_python(drafted, mode="json"), on_progress=on_progress)
        except Fatal as exc:
            raise _known(exc, "IMAGE")(exc.message) from None
        except (Crashed, HandlerFailed) as exc:
            raise PictureUnreadable(f"The pictures could not be worked on: {exc.message.splitlines()[0]}") from exc
    for number, report in zip(usable, _REPORTS.validate_python(found), strict=True):
        reports[number] = report
    return reports


def _known(exc: Fatal, kind: str) -> type[HeadraceError]:
    return _ERRORS.get(str(exc.details.get("code")), _UNREADABLE[kind])


_DRAFTED = ("result", "found_mask", "overlay", "comparison", "variant")


def _drafted(order: Order, drafts: contextlib.ExitStack) -> Order:
    """The same order with drafts in the place of the files that it writes."""
    written = {
        name: drafts.enter_context(paths.written_at_once(getattr(order, name), force=order.force)) for name in _DRAFTED
    }
    return replace(order, **written)  # type: ignore[arg-type]


def _with_real_names(message: str, drafted: Order, order: Order) -> str:
    for name in _DRAFTED:
        draft, target = getattr(drafted, name), getattr(order, name)
        if draft is not None:
            message = message.replace(draft, target)
    return message


def _is_usable(order: Order) -> bool:
    """What is wrong with a single file is said when it is done alone."""
    try:
        _require_places(order)
    except HeadraceError:
        return False
    return True


def _require_places(order: Order) -> None:
    source = Path(order.source)
    kind = order.media or media.media_of(source)
    paths.require_source(source)
    if order.result is not None:
        paths.require_result(Path(order.result), source, force=order.force, media=kind)
    for target, what in ((order.found_mask, "mask"), (order.overlay, "overlay"), (order.comparison, "comparison")):
        if target is not None:
            paths.require_mask(Path(target), source, force=order.force, what=what)
    if order.overlay is not None and kind == "PPT":
        raise TargetUnusable("Slides cannot be drawn here: leave the overlay out.")
    if order.mask is not None:
        paths.require_source(Path(order.mask))


def _require_libraries(kind: str) -> None:
    if any(importlib.util.find_spec(name) is None for name in _LIBRARIES[kind]):
        raise RemovalMissing(f"Removal needs libraries that are not installed: run {extras.remedy('removal')}.")

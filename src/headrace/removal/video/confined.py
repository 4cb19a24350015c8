"""Clips in a child process of little power: without network, secrets and much memory; killed with its parent."""

import importlib.util
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import TypeAdapter

from headrace.errors import HeadraceError
from headrace.removal import paths
from headrace.removal.errors import (
    CandidateUnknown,
    ClipUnreadable,
    EncoderMissing,
    HintUnusable,
    ModelDamaged,
    RemovalMissing,
    TargetUnusable,
)
from headrace.removal.video.model import VideoOrder, VideoReport
from headrace.tasks.context import BlockingTaskContext
from headrace.tasks.errors import Fatal
from headrace.tasks.execution import ProcessLimits
from headrace.tasks.isolation.errors import Crashed, HandlerFailed
from headrace.tasks.isolation.single import run_single
from headrace.tasks.registry import Registry, TaskType

VIDEO = "headrace.video"
_ENDINGS = (".mp4", ".m4v", ".mov", ".mkv", ".webm")
# Address space counts what is only reserved, too: encoders of 4K reserve most. A clip takes as long as it is long.
_LIMITS = ProcessLimits(
    memory_bytes=8 * 1024**3, cpu_seconds=12 * 3600, file_bytes=32 * 1024**3, open_files=256, wall_seconds=12 * 3600
)
# By themselves these libraries reserve address space for as many threads as the machine has cores; SVT-AV1 chatters.
_ENVIRONMENT = ("OPENBLAS_NUM_THREADS=2", "OPENCV_FOR_THREADS_NUM=2", "SVT_LOG=1")
_ERRORS: dict[str, type[HeadraceError]] = {
    each.code: each
    for each in (CandidateUnknown, ClipUnreadable, EncoderMissing, HintUnusable, ModelDamaged, TargetUnusable)
}


def carry_out(order: VideoOrder, *, on_progress: Callable[[int], object] | None = None) -> VideoReport:
    """What was found in the clip, and what was done.

    What can be known to be wrong with the files is said before anything is computed, and results appear whole or not
    at all, also when this is interrupted.
    """
    _require_engines()
    source = Path(order.source)
    paths.require_source(source)
    if order.result is not None:
        _require_result(Path(order.result), source, force=order.force)
    for picture, what in ((order.overlay, "overlay"), (order.preview, "preview")):
        if picture is not None:
            paths.require_mask(Path(picture), source, force=order.force, what=what)
    if order.drawn is not None:
        paths.require_source(Path(order.drawn))
    with (
        paths.written_at_once(order.result, force=order.force) as result,
        paths.written_at_once(order.overlay, force=order.force) as overlay,
        paths.written_at_once(order.preview, force=order.force) as preview,
    ):
        return _in_child(order, replace(order, result=result, overlay=overlay, preview=preview), on_progress)


def video_type() -> TaskType:
    """One clip as a task: its payload is a ``VideoOrder``, its result a ``VideoReport``."""
    registry = Registry()
    registry.task(VIDEO, isolation="process", limits=_LIMITS, environment=_ENVIRONMENT, network=False)(clean)
    return registry.get(VIDEO)


def clean(context: BlockingTaskContext, order: VideoOrder) -> VideoReport:
    """The handler. What is wrong with a clip will not be better at the next attempt."""
    from headrace.removal.video.job import process

    try:
        return process(order, context.progress)
    except tuple(_ERRORS.values()) as exc:
        raise Fatal(exc.message, code=exc.code) from exc
    except MemoryError as exc:
        raise Fatal(f"{order.source} needs more memory than a clip may.", code=ClipUnreadable.code) from exc


def _in_child(order: VideoOrder, drafted: VideoOrder, on_progress: Callable[[int], object] | None) -> VideoReport:
    try:
        result = run_single(video_type(), asdict(drafted), on_progress=on_progress)
    except Fatal as exc:
        known = _ERRORS.get(str(exc.details.get("code")), ClipUnreadable)
        message = exc.message
        for draft, name in (
            (drafted.result, order.result), (drafted.overlay, order.overlay), (drafted.preview, order.preview),
        ):  # fmt: skip
            if draft is not None and name is not None:
                message = message.replace(draft, name)
        raise known(message) from None
    except (Crashed, HandlerFailed) as exc:
        raise ClipUnreadable(f"{order.source} could not be worked on: {exc.message.splitlines()[0]}") from exc
    return TypeAdapter(VideoReport).validate_python(result)


def _require_result(target: Path, source: Path, *, force: bool) -> None:
    if target.suffix.lower() not in _ENDINGS:
        raise TargetUnusable(f"{target} has an ending of another kind: let it end in {', '.join(_ENDINGS)}.")
    paths.require_target(target, source, force=force, what="clip")


def _require_engines() -> None:
    if any(importlib.util.find_spec(name) is None for name in ("av", "cv2", "numpy", "onnxruntime", "PIL")):
        raise RemovalMissing

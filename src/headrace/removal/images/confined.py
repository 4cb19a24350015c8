"""Pictures in a child process of little power: without network, secrets and much memory; killed with its parent."""

import importlib.util
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import TypeAdapter

from headrace import extras
from headrace.errors import HeadraceError
from headrace.removal import paths
from headrace.removal.errors import (
    CandidateUnknown,
    HintUnusable,
    ModelDamaged,
    PictureUnreadable,
    RemovalMissing,
    TargetUnusable,
)
from headrace.removal.report import Order, Report
from headrace.tasks.context import BlockingTaskContext
from headrace.tasks.errors import Fatal
from headrace.tasks.execution import ProcessLimits
from headrace.tasks.isolation.errors import Crashed, HandlerFailed
from headrace.tasks.isolation.single import run_single
from headrace.tasks.registry import Registry, TaskType

PICTURE = "headrace.picture"
# Pictures of 25 megapixels, the largest that are worked on at their full size, need most: under 2 GB. Address space
# counts what is only reserved, too, and comes to 3. Each two threads more look at one more tile at a time.
_GIGABYTES, _GIGABYTES_A_TILE = 4, 1
# By themselves these libraries reserve address space for as many threads as the machine has cores: at 16, a gigabyte.
TWO_THREADS = ("OPENBLAS_NUM_THREADS=2", "OPENCV_FOR_THREADS_NUM=2")
_ERRORS: dict[str, type[HeadraceError]] = {
    each.code: each for each in (CandidateUnknown, HintUnusable, ModelDamaged, PictureUnreadable, TargetUnusable)
}


def carry_out(order: Order, *, on_progress: Callable[[int], object] | None = None) -> Report:
    """What was seen in the picture, and what was done.

    What can be known to be wrong with the files is said before anything is computed, and results appear whole or not
    at all, also when this is interrupted.
    """
    require_engines()
    source = Path(order.source)
    paths.require_source(source)
    if order.result is not None:
        paths.require_result(Path(order.result), source, force=order.force)
    if order.mask is not None:
        paths.require_mask(Path(order.mask), source, force=order.force)
    if order.compare is not None:
        paths.require_mask(Path(order.compare), source, force=order.force, what="comparison")
    if order.drawn is not None:
        paths.require_source(Path(order.drawn))
    with (
        paths.written_at_once(order.result, force=order.force) as result,
        paths.written_at_once(order.mask, force=order.force) as mask,
        paths.written_at_once(order.compare, force=order.force) as compare,
    ):
        return _in_child(order, replace(order, result=result, mask=mask, compare=compare), on_progress)


def picture_type(threads: int) -> TaskType:
    """One picture as a task: its payload is an ``Order``, its result a ``Report``."""
    registry = Registry()
    registry.task(PICTURE, isolation="process", limits=limits(threads), environment=TWO_THREADS, network=False)(clean)
    return registry.get(PICTURE)


def clean(context: BlockingTaskContext, order: Order) -> Report:
    """The handler. What is wrong with a picture will not be better at the next attempt."""
    from headrace.removal.local import process

    try:
        return process(order, context.progress, lambda: context.scratch)
    except tuple(_ERRORS.values()) as exc:
        raise Fatal(exc.message, code=exc.code) from exc


def limits(threads: int) -> ProcessLimits:
    """What the child may use."""
    more = max(0, threads // 2 - 1)
    return ProcessLimits(
        memory_bytes=(_GIGABYTES + _GIGABYTES_A_TILE * more) * 1024**3,
        cpu_seconds=600,
        file_bytes=4 * 1024**3,
        open_files=256,
        wall_seconds=3600,
    )


def _in_child(order: Order, drafted: Order, on_progress: Callable[[int], object] | None) -> Report:
    try:
        result = run_single(picture_type(order.threads), asdict(drafted), on_progress=on_progress)
    except Fatal as exc:
        known = _ERRORS.get(str(exc.details.get("code")), PictureUnreadable)
        raise known(_with_real_names(exc.message, order, drafted)) from None
    except (Crashed, HandlerFailed) as exc:
        raise PictureUnreadable(f"{order.source} could not be worked on: {exc.message.splitlines()[0]}") from exc
    return TypeAdapter(Report).validate_python(result)


def _with_real_names(message: str, order: Order, drafted: Order) -> str:
    files = ((drafted.result, order.result), (drafted.mask, order.mask), (drafted.compare, order.compare))
    for draft, name in files:
        if draft is not None and name is not None:
            message = message.replace(draft, name)
    return message


def require_engines() -> None:
    """Raises ``RemovalMissing``."""
    missing = [name for name in ("cv2", "numpy", "onnxruntime", "PIL") if importlib.util.find_spec(name) is None]
    if missing:
        raise RemovalMissing(f"Removal needs libraries that are not installed: run {extras.remedy('removal')}.")

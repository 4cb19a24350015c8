"""Documents in a child process of little power: without network, secrets and much memory; killed with its parent."""

import importlib.util
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import TypeAdapter

from headrace import extras
from headrace.errors import HeadraceError
from headrace.removal import paths
from headrace.removal.candidates import DocumentOrder, DocumentReport
from headrace.removal.documents import job
from headrace.removal.errors import (
    CandidateUnknown,
    ConverterMissing,
    DocumentEncrypted,
    DocumentSigned,
    DocumentUnreadable,
    RemovalMissing,
    TargetUnusable,
)
from headrace.tasks.context import BlockingTaskContext
from headrace.tasks.errors import Fatal
from headrace.tasks.execution import ProcessLimits
from headrace.tasks.isolation.errors import Crashed, HandlerFailed
from headrace.tasks.isolation.single import run_single
from headrace.tasks.registry import Registry, TaskType

DOCUMENT = "headrace.document"
_ENDINGS = {"pdf": (".pdf",), "pptx": (".pptx", ".ppsx", ".potx", ".pptm"), "ppt": (".ppt", ".pps", ".pptx")}
# A page of five million instructions, the most that is read, needs two gigabytes.
_LIMITS = ProcessLimits(
    memory_bytes=3 * 1024**3, cpu_seconds=600, file_bytes=4 * 1024**3, open_files=256, wall_seconds=1800
)
_ERRORS: dict[str, type[HeadraceError]] = {
    each.code: each
    for each in (
        CandidateUnknown, ConverterMissing, DocumentEncrypted, DocumentSigned, DocumentUnreadable, TargetUnusable,
    )
}  # fmt: skip


def carry_out(order: DocumentOrder, *, on_progress: Callable[[int], object] | None = None) -> DocumentReport:
    """What was found in the document, and what was done.

    What can be known to be wrong with the files is said before anything is computed, and the result appears whole or
    not at all, also when this is interrupted.
    """
    _require_engines()
    source = Path(order.source)
    paths.require_source(source)
    if order.result is not None:
        _require_result(Path(order.result), source, force=order.force)
    if order.overlay is not None:
        if job.recognise(source) is not job.DocumentKind.PDF:
            raise TargetUnusable("Slides cannot be drawn here: leave the overlay out.")
        paths.require_mask(Path(order.overlay), source, force=order.force)
    if order.preview is not None:
        if job.recognise(source) is job.DocumentKind.PDF:
            paths.require_mask(Path(order.preview), source, force=order.force, what="preview")
        else:
            order = replace(order, preview=None)  # slides cannot be drawn here
    with (
        paths.written_at_once(order.result, force=order.force) as result,
        paths.written_at_once(order.overlay, force=order.force) as overlay,
        paths.written_at_once(order.preview, force=order.force) as preview,
    ):
        return _in_child(order, replace(order, result=result, overlay=overlay, preview=preview), on_progress)


def document_type(*, sockets: bool = False) -> TaskType:
    """One document as a task: its payload is a ``DocumentOrder``, its result a ``DocumentReport``.

    ``sockets`` is for LibreOffice alone, which does not start without; ``slides.legacy`` takes its network away.
    """
    registry = Registry()
    registry.task(
        DOCUMENT, isolation="process", limits=_LIMITS, environment=("OPENBLAS_NUM_THREADS=2",), network=sockets
    )(clean)
    return registry.get(DOCUMENT)


def clean(context: BlockingTaskContext, order: DocumentOrder) -> DocumentReport:
    """The handler. What is wrong with a document will not be better at the next attempt."""
    try:
        return job.process(order, context.progress)
    except tuple(_ERRORS.values()) as exc:
        raise Fatal(exc.message, code=exc.code) from exc
    except MemoryError as exc:
        raise Fatal(_too_large(order.source), code=DocumentUnreadable.code) from exc


def _in_child(
    order: DocumentOrder, drafted: DocumentOrder, on_progress: Callable[[int], object] | None
) -> DocumentReport:
    try:
        sockets = job.recognise(Path(order.source)) is job.DocumentKind.OLD_SLIDES
        result = run_single(document_type(sockets=sockets), asdict(drafted), on_progress=on_progress)
    except Fatal as exc:
        known = _ERRORS.get(str(exc.details.get("code")), DocumentUnreadable)
        message = exc.message
        drafts = (drafted.result, drafted.overlay, drafted.preview)
        for draft, name in zip(drafts, (order.result, order.overlay, order.preview), strict=True):
            if draft is not None and name is not None:
                message = message.replace(draft, name)
        raise known(message) from None
    except (Crashed, HandlerFailed) as exc:
        raise DocumentUnreadable(f"{order.source} could not be worked on: {exc.message.splitlines()[0]}") from exc
    return TypeAdapter(DocumentReport).validate_python(result)


def _too_large(source: str) -> str:
    return f"{source} needs more memory than a document may."


def _require_result(target: Path, source: Path, *, force: bool) -> None:
    kind = job.recognise(source)
    endings = _ENDINGS.get(str(kind), ())
    if endings and target.suffix.lower() not in endings and target.suffix != source.suffix:
        raise TargetUnusable(f"{target} has an ending of another kind: let it end in {', '.join(endings)}.")
    paths.require_target(target, source, force=force, what="document")


def _require_engines() -> None:
    if any(importlib.util.find_spec(name) is None for name in ("lxml", "numpy", "pikepdf", "PIL", "pypdfium2")):
        raise RemovalMissing(f"Removal needs libraries that are not installed: run {extras.remedy('removal')}.")

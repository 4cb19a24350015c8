"""One file without a service: the same four stages that the service runs, one after the other, in a folder.

A file from anywhere may be made to harm: call these in a child process, as ``runner.carry_out`` does.
"""

import contextlib
import ctypes
import errno
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.removal import media, stages
from headrace.removal.documents.slides import legacy
from headrace.removal.errors import PictureUnreadable, TargetUnusable
from headrace.removal.images.shared_mark import MAX_HELD_BYTES, MAX_VIEWS, MIN_VIEWS
from headrace.removal.local_messages import message_of
from headrace.removal.order import Names, Order, Progress, Stage, StageOrder
from headrace.removal.report import Report

# How far the work is, in percent, when a stage begins and ends.
_PERCENTS = {
    Stage.PREPROCESSING: (0, 5),
    Stage.DETECTING: (5, 45),
    Stage.INPAINTING: (45, 85),
    Stage.PACKAGING: (85, 100),
}
_DISK_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def process(order: Order, progress: Progress, scratch: Callable[[], Path]) -> Report:
    """Look for a mark, and take it off if a result is asked for. Files of the work lie in the folder of ``scratch``.

    Overwrites the files that the order names; a result that is not good is not left there. ``progress`` receives
    percents, many times a second; what it raises ends the work. Raises the errors of ``errors`` that are of the file.
    """
    return _Run(order, scratch()).process(progress)


def process_batch(orders: Sequence[Order], progress: Progress, scratch: Callable[[], Path]) -> list[Report | None]:
    """Take the mark that pictures of one size have in common off each of them, as the service does with one batch.

    Pictures that cannot be read, and those whose group has no mark in common, get no report: they are left to be done
    alone.
    """
    from headrace.removal.images.files import still_size

    folder = scratch()
    sizes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, order in enumerate(orders):
        size = still_size(order.source)
        if size is not None:
            sizes[size].append(number)
    groups = {size: numbers for size, numbers in sizes.items() if len(numbers) >= MIN_VIEWS}
    total = sum(len(numbers) for numbers in groups.values())
    reports: list[Report | None] = [None] * len(orders)
    done = 0
    for (width, height), numbers in groups.items():
        matte: Path | None = None
        most = min(MAX_VIEWS, MAX_HELD_BYTES // max(1, 3 * width * height))
        for number in numbers:
            start = 100 * done // total
            done += 1
            part = _part(progress, start, 100 * done // total)
            others = [orders[other].source for other in numbers if other != number][:most]
            (place := folder / str(number)).mkdir()
            try:
                run = _Run(orders[number], place, views=[] if matte else others, matte=matte)
                reports[number] = run.process(part)
            except PictureUnreadable:  # reported when its own turn comes
                continue
            matte = matte or run.learned
            if matte is None:
                break  # the pictures have nothing in common: learning again would find the same
    progress(100)
    return reports


class _Run:
    """One order, and what its stages have found so far."""

    def __init__(self, order: Order, folder: Path, *, views: Sequence[str] = (), matte: Path | None = None) -> None:
        order = _described(order)
        names = [f"view.{number}" for number in range(len(views))]
        for name, path in [(Names.MATTE, matte), *zip(names, views, strict=True)]:
            if path is not None:
                (folder / name).symlink_to(Path(path).resolve())
        self._order = StageOrder(
            order, Stage.PREPROCESSING, str(folder), views=names, same_mark=bool(views or matte), whole=True
        )

    @property
    def learned(self) -> Path | None:
        """The file of the mark that the pictures of a batch have in common, if there is one."""
        matte = Path(self._order.path(Names.MATTE))
        return matte if matte.exists() else None

    def process(self, progress: Progress) -> Report:
        began = time.monotonic()
        whole = Report()
        for stage in Stage if self._order.order.result is not None else (Stage.PREPROCESSING, Stage.DETECTING):
            report = self._run(stage, progress)
            whole = _joined(whole, report, self._order.order)
            if report.refused is not None:
                break
        order = self._order.order
        if whole.refused is not None and order.result is not None:
            Path(order.result).unlink(missing_ok=True)
        progress(100)
        if order.result is None:  # what would have to be asked is no refusal yet
            whole = replace(whole, refused=None, reason=None)
        return replace(whole, facts={**whole.facts, "seconds": round(time.monotonic() - began, 3)})

    def _run(self, stage: Stage, progress: Progress) -> Report:
        self._order = replace(self._order, stage=stage)
        start, end = _PERCENTS[stage]
        with self._named():
            self._before(stage)
            report = stages.run(self._order, _part(progress, start, end))
            if stage is Stage.DETECTING:
                found = {**report.facts, "candidates": [each.as_json() for each in report.candidates]}
                self._order = replace(self._order, earlier=found)
            if report.refused is None or stage is Stage.DETECTING:
                self._after(stage, report)
        progress(end)
        _give_back_memory()
        return report

    def _before(self, stage: Stage) -> None:
        if stage is Stage.DETECTING and self._order.order.format == "ppt":
            legacy.convert(self._order.order.source, self._order.path(Names.CONVERTED))

    def _after(self, stage: Stage, report: Report) -> None:
        """Files that the command wants, and the service makes elsewhere or not at all."""
        order = self._order.order
        if Names.CLEANED in report.keeps and order.result is not None:
            legacy.convert(self._order.path(Names.CLEANED), self._order.path("result.ppt"))
            with writing(order.result):
                Path(order.result).write_bytes(Path(self._order.path("result.ppt")).read_bytes())
        if order.media != "IMAGE":
            return
        from headrace.removal.images import files

        if stage is Stage.DETECTING and order.found_mask is not None:
            with writing(order.found_mask):
                files.save_mask(self._order, order.found_mask)
        if stage is Stage.PACKAGING and order.variant is not None:
            with writing(order.variant):
                files.save_variant(self._order, order.variant)
        if stage is Stage.PACKAGING and order.comparison is not None:
            with writing(order.comparison):
                files.save_comparison(self._order, order.comparison)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Errors name the file that the user named."""
        order = self._order.order
        try:
            yield
        except HeadraceError as exc:
            message = exc.message.replace(self._order.path(Names.CONVERTED), order.source)
            raise type(exc)(message.replace(f"{self._order.folder}/", "")) from exc
        except OSError as exc:
            if exc.errno not in _DISK_FULL:
                raise
            raise TargetUnusable(f"{order.result} could not be written: {exc.strerror}") from exc


def _described(order: Order) -> Order:
    """With the kind of media, and the formats of source and result."""
    order = replace(order, media=order.media or media.media_of(order.source))
    if order.media == "IMAGE":
        from headrace.removal.images.files import described

        return described(order)
    if order.media == "VIDEO":
        return order
    # In a document a mark is an object, not pixels: a box chooses among the objects, a mask says nothing of them.
    order = replace(order, mask=None)
    written = "ppt" if order.result is not None and Path(order.result).suffix.lower() != ".pptx" else "pptx"
    kind = media.document_of(order.source)
    return replace(order, format=kind, output_format=written if kind == "ppt" else kind)


def _joined(whole: Report, report: Report, order: Order) -> Report:
    """What all stages so far have found and done."""
    facts = {"clip": report.facts} if order.media == "VIDEO" and not whole.facts else report.facts
    reason = report.reason
    if report.refused is not None and reason is None:
        reason = message_of(report.refused, order)
    removed: dict[str, Any] = {}
    if "confidence" in report.facts and report.refused is None:
        chosen = order.candidates or [each.id for each in whole.candidates if each.certain]
        removed = {"removed": list(chosen)}
    return Report(
        {**whole.facts, **facts, **removed}, whole.candidates or report.candidates, [], report.refused, reason
    )


def _part(progress: Progress, start: int, end: int) -> Progress:
    return lambda percent: progress(start + (end - start) * percent // 100)


@contextlib.contextmanager
def writing(target: str) -> Iterator[None]:
    """Names the file in an error of writing it. Raises ``TargetUnusable``."""
    try:
        yield
    except (OSError, ValueError, KeyError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise TargetUnusable(f"{target} could not be written: {reason}") from exc


def _give_back_memory() -> None:
    """The networks' threads leave freed memory with the process otherwise, beside what the next stage needs."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

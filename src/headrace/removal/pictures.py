"""One picture: decoded, looked at, solved, written. A pure job: it knows neither commands nor tasks.

A file from anywhere may be made to harm: call ``process`` in a child process, as ``confined.carry_out`` does.
"""

import contextlib
import ctypes
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.removal import formats
from headrace.removal.errors import HintUnusable, PictureUnreadable, TargetUnusable
from headrace.removal.report import MarkedRegion, Order, Removal, Report

if TYPE_CHECKING:
    from headrace.removal.comparison import Triptych
    from headrace.removal.eye.hinting import Hints
    from headrace.removal.eye.model import Detection, Restoration

MOST_PIXELS = 250_000_000
# How far the work is, in percent, when a stage begins.
_READ, _SEEN, _SOLVED, _WRITTEN = 5, 45, 90, 100

Progress = Callable[[int], object]


def process(order: Order, progress: Progress, scratch: Callable[[], Path]) -> Report:
    """Look for a mark, and take it off if a result is asked for. ``scratch`` makes a folder for what is needed between.

    Writes straight to the files that the order names, over what is there. ``progress`` is told percents; what it raises
    ends the work. Raises ``PictureUnreadable``, ``HintUnusable``, ``TargetUnusable`` and ``ModelDamaged``.
    """
    from headrace.removal.eye.detecting import detect

    if _is_animated(order.source):
        from headrace.removal import animated

        return animated.process(order, progress, scratch())
    began = time.monotonic()
    picture, original, kind = read(order)
    hints = _hints(order, picture)
    progress(_READ)
    detection = _chosen(detect(picture, threads=order.threads, hints=hints), order)
    _give_back_memory()
    progress(_SEEN)
    if order.mask is not None:
        _write_mask(detection.at_least(order.least_score), order.mask)
    if order.result is None:
        progress(_WRITTEN)
        return _report(detection, None, began, order.least_score)
    restoration, triptych = _solved(picture, detection, order, hints)
    report = _report(detection, _removal(restoration, original), began, order.least_score)
    del detection
    _give_back_memory()
    progress(_SOLVED)
    if restoration.refused is None:
        with writing(order.result):
            formats.write(restoration.picture, original, order.result, kind)
        if order.compare is not None:
            with writing(order.compare):
                triptych.save(order.compare, restoration.picture)
    progress(_WRITTEN)
    return report


def _is_animated(source: str) -> bool:
    from headrace.removal import animation

    try:
        return animation.is_animated(source)
    except (OSError, ValueError, SyntaxError):  # what is wrong with it is told where it is read
        return False


def _solved(
    picture: Any, detection: "Detection", order: Order, hints: "Hints | None"
) -> "tuple[Restoration, Triptych]":
    """The picture without its mark, with as much of the change as is ordered; and what a comparison shows."""
    from headrace.removal.comparison import Triptych, blended
    from headrace.removal.eye.solving import solve
    from headrace.removal.thorough import with_second_pass

    triptych = Triptych.of(picture, detection.mask_tight) if order.compare else Triptych()
    before: Any = picture.copy() if order.strength != 1 or order.thorough else None
    restoration = solve(picture, detection, least_score=order.least_score, in_place=True, threads=order.threads)
    if order.thorough and not order.only:
        restoration = with_second_pass(before, restoration, hints, threads=order.threads, least_score=order.least_score)
    if order.strength != 1 and restoration.refused is None:
        restoration = replace(restoration, picture=blended(before, restoration.picture, order.strength))
    return restoration, triptych


def _hints(order: Order, picture: Any) -> "Hints | None":
    """What the order tells of the mark, if anything."""
    from headrace.removal.comparison import read_mask
    from headrace.removal.eye.hinting import Hints

    if not (order.boxes or order.keep or order.drawn):
        return None
    height, width = picture.shape[:2]
    for left, top, _, _ in (*order.boxes, *order.keep):
        if left >= width or top >= height:
            raise HintUnusable(f"A box begins at {left}, {top}, outside the picture of {width} x {height} pixels.")
    mask = None
    if order.drawn is not None:
        try:
            mask = read_mask(order.drawn)
        except (OSError, ValueError, SyntaxError) as exc:
            raise HintUnusable(f"{order.drawn} is not a picture that can be read: {exc}") from exc
        if mask.shape != (height, width):
            raise HintUnusable(
                f"{order.drawn} has {mask.shape[1]} x {mask.shape[0]} pixels: a mask has the picture's size, "
                f"{width} x {height}."
            )
    return Hints(boxes=order.boxes, keep=order.keep, mask=mask)


def _chosen(detection: "Detection", order: Order) -> "Detection":
    """The detection with the regions that are wanted alone."""
    if not order.only:
        return detection
    listed = sum(region.score >= order.least_score for region in detection.regions)
    if max(order.only) > listed:
        raise HintUnusable(
            f"There is no region {max(order.only)}: `headrace detect` lists {listed} in this picture, numbered from 1."
        )
    return detection.only(order.only)


def _write_mask(detection: "Detection", target: str) -> None:
    from PIL import Image

    with writing(target):
        Image.fromarray(detection.mask_tight).convert("L").save(target, "PNG")


def _report(detection: "Detection", removal: Removal | None, began: float, least_score: float) -> Report:
    """Lists what removal would take off, and nothing less likely."""
    regions = tuple(
        MarkedRegion(each.left, each.top, each.width, each.height, each.score, each.pixels)
        for each in detection.regions
        if each.score >= least_score
    )
    return Report(
        width=detection.width,
        height=detection.height,
        score=round(detection.score, 4),
        regions=regions,
        covered=round(detection.covered, 6),
        seconds=round(time.monotonic() - began, 3),
        removal=removal,
    )


def _removal(restoration: "Restoration", original: formats.Original) -> Removal:
    removed = restoration.refused is None
    return Removal(
        removed=removed,
        reason=restoration.refused,
        confidence=restoration.confidence,
        poor=restoration.poor,
        computed=restoration.inverted,
        invented=restoration.filled,
        warnings=tuple(original.notes) if removed else (),
        needs_review=restoration.needs_review,
    )


def read(order: Order) -> tuple[Any, formats.Original, str]:
    """The pixels, what else the file says, and the kind of the result. Raises ``PictureUnreadable``."""
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    try:
        picture, original = formats.read(order.source)
        kind = original.kind if order.result is None else formats.kind_of_result(order.result, original)
    except formats.NotCleanable as exc:
        raise PictureUnreadable(str(exc)) from exc
    except UnidentifiedImageError as exc:
        raise PictureUnreadable(f"{Path(order.source).name} is no picture, clip, PDF or deck of slides.") from exc
    except (Image.DecompressionBombError, *formats.BROKEN) as exc:
        raise PictureUnreadable(f"{order.source} is not a picture that can be read: {exc}") from exc
    if original.transparency is not None and kind in formats.NO_TRANSPARENCY:
        original.notes.append(f"{kind} has no transparency")
    return picture, original, kind


@contextlib.contextmanager
def writing(target: str) -> Iterator[None]:
    """Says of what goes wrong in writing a file that it is that file. Raises ``TargetUnusable``."""
    try:
        yield
    except (OSError, ValueError, KeyError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise TargetUnusable(f"{target} could not be written: {reason}") from exc


def _give_back_memory() -> None:
    """What the networks' threads have freed stays with the process otherwise, beside what the next stage needs."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

"""One picture: decoded, looked at, solved, written. A pure job: it knows neither commands nor tasks.

A file from anywhere may be made to harm: call ``process`` in a child process, as ``confined.carry_out`` does.
"""

import contextlib
import ctypes
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.removal import formats
from headrace.removal.errors import PictureUnreadable, TargetUnusable
from headrace.removal.report import MarkedRegion, Order, Removal, Report

if TYPE_CHECKING:
    from headrace.removal.eye.model import Restoration, Sight

MOST_PIXELS = 250_000_000
_POOR = 0.2  # results of less confidence are better looked at
# How far the work is, in percent, when a stage begins.
_READ, _SEEN, _SOLVED, _WRITTEN = 5, 45, 90, 100

Progress = Callable[[int], object]


def process(order: Order, progress: Progress) -> Report:
    """Look for a mark, and take it off if a result is asked for.

    Writes straight to the files that the order names, over what is there. ``progress`` is told percents; what it raises
    ends the work. Raises ``PictureUnreadable``, ``TargetUnusable`` and ``ModelDamaged``.
    """
    import numpy as np
    from PIL import Image

    from headrace.removal.eye.looking import look
    from headrace.removal.eye.solving import solve

    began = time.monotonic()
    picture, original, kind = _read(order)
    progress(_READ)
    sight = look(picture, threads=order.threads)
    _give_back_memory()
    progress(_SEEN)
    if order.mask is not None:
        with _writing(order.mask):
            Image.fromarray(sight.mask_tight.astype(np.uint8) * 255).save(order.mask, "PNG")
    if order.result is None:
        progress(_WRITTEN)
        return _report(sight, None, began)
    restoration = solve(picture, sight, least_score=order.least_score, in_place=True)
    report = _report(sight, _removal(restoration, original), began)
    del sight
    _give_back_memory()
    progress(_SOLVED)
    if restoration.refused is None:
        with _writing(order.result):
            formats.write(restoration.picture, original, order.result, kind)
    progress(_WRITTEN)
    return report


def _report(sight: "Sight", removal: Removal | None, began: float) -> Report:
    regions = tuple(
        MarkedRegion(each.left, each.top, each.width, each.height, each.score, each.pixels) for each in sight.regions
    )
    return Report(
        width=sight.width,
        height=sight.height,
        score=round(sight.score, 4),
        regions=regions,
        covered=round(sight.covered, 6),
        seconds=round(time.monotonic() - began, 3),
        removal=removal,
    )


def _removal(restoration: "Restoration", original: formats.Original) -> Removal:
    removed = restoration.refused is None
    return Removal(
        removed=removed,
        reason=restoration.refused,
        confidence=restoration.confidence,
        poor=removed and restoration.confidence < _POOR,
        computed=restoration.inverted,
        invented=restoration.filled,
        warnings=tuple(original.notes) if removed else (),
    )


def _read(order: Order) -> tuple[Any, formats.Original, str]:
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    try:
        picture, original = formats.read(order.source)
        kind = original.kind if order.result is None else formats.kind_of_result(order.result, original)
    except formats.NotCleanable as exc:
        raise PictureUnreadable(str(exc)) from exc
    except (Image.DecompressionBombError, OSError, ValueError, SyntaxError) as exc:
        raise PictureUnreadable(f"{order.source} is not a picture that can be read: {exc}") from exc
    if original.transparency is not None and kind in formats.NO_TRANSPARENCY:
        original.notes.append(f"{kind} has no transparency")
    return picture, original, kind


@contextlib.contextmanager
def _writing(target: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise TargetUnusable(f"{target} could not be written: {reason}") from exc


def _give_back_memory() -> None:
    """What the networks' threads have freed stays with the process otherwise, beside what the next stage needs."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

"""Holds the result against the original, by another program's eyes: PDFium draws and reads both.

Outside the mark nothing may look different; inside, its edges must be gone; and no letter may be lost but the mark's.
"""

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np
import pypdfium2
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from headrace.removal.documents.pdf.geometry import Quad
from headrace.removal.documents.pdf.page_editing import Taken
from headrace.removal.documents.pdf.pages import PageFrame
from headrace.removal.report import Check

_MAX_CHANGED_PAGES, _MAX_OTHER_PAGES = 12, 4
_MAX_SECONDS = 20.0
_PAGE_SIDE_PX = 700.0  # pixels
_MAX_ROUNDING_LEVELS = 4  # levels of 255: less is another rounding
_MAX_STRAY_RATIO = 0.0005  # of the page: less is the smoothing of an edge
_MARK_MARGIN_PX = 4  # pixels around the mark's box
_MAX_RESIDUE_RATIO = 0.3
_MIN_EDGE_RATIO = 1.5  # than a clear edge of the mark

Pixels = NDArray[np.float32]


def check(
    before: str, after: str, *, password: str | None, taken: Mapping[int, Taken], frames: Mapping[int, PageFrame]
) -> Check:
    """Compares the pages that lost a mark, or a sample of them, and some that did not."""
    try:
        with (
            closing(pypdfium2.PdfDocument(before, password=password)) as old,
            closing(pypdfium2.PdfDocument(after, password=password)) as new,
        ):
            if len(old) != len(new):
                return Check(False, "The result has another number of pages.", 0.0, 1.0, 0.0, 0)
            return _compared(old, new, taken, frames)
    except pypdfium2.PdfiumError as exc:
        return Check(False, f"The pages cannot be drawn, so that nothing is proved: {exc}", 0.0, 1.0, 0.0, 0)


def _compared(old: Any, new: Any, taken: Mapping[int, Taken], frames: Mapping[int, PageFrame]) -> Check:
    until = time.monotonic() + _MAX_SECONDS
    residue, changed, count = _Residue(), 0.0, 0
    others = [number for number in range(1, len(old) + 1) if number not in taken]
    for number in (*_spread(sorted(taken), _MAX_CHANGED_PAGES), *_spread(others, _MAX_OTHER_PAGES)):
        if count and time.monotonic() > until:
            break
        pages = (old[number - 1], new[number - 1])
        lost = taken.get(number, Taken())
        if (reason := _lost_text(pages, lost.glyphs)) is not None:
            return Check(False, f"Page {number}: {reason}", *residue.shares(), changed, count)
        first, second = (_drawn(page) for page in pages)
        if first.shape != second.shape:
            return Check(False, f"Page {number} has another size.", *residue.shares(), changed, count)
        differs = np.abs(first - second) > _MAX_ROUNDING_LEVELS
        stray = differs & ~_area(lost.quads, frames.get(number), first.shape)
        if stray.mean() > _MAX_STRAY_RATIO:
            return Check(False, f"Page {number} looks different outside the mark.", *residue.shares(), changed, count)
        residue.add(first, second)
        changed, count = (changed * count + float(differs.mean())) / (count + 1), count + 1
    left = residue.shares()
    passed = left[1] < _MAX_RESIDUE_RATIO
    return Check(passed, None if passed else "The mark is still seen.", *left, round(changed, 6), count)


def _spread(numbers: list[int], most: int) -> list[int]:
    """Some of them, evenly, with the first and the last."""
    if len(numbers) <= most:
        return numbers
    return sorted({numbers[round(at * (len(numbers) - 1) / (most - 1))] for at in range(most)})


def _drawn(page: Any) -> Pixels:
    width, height = page.get_size()
    scale = min(_PAGE_SIDE_PX / max(width, height, 1.0), 4.0)
    # With annotations, which are part of what is seen; fields are not filled in.
    bitmap = page.render(scale=scale, grayscale=True, may_draw_forms=False)
    return np.asarray(bitmap.to_numpy(), np.float32).reshape(bitmap.height, bitmap.width)


def _area(quads: list[Quad], frame: PageFrame | None, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Where the mark was, and a little around it."""
    mask = Image.new("1", (shape[1], shape[0]))
    if frame is not None:
        draw = ImageDraw.Draw(mask)
        scale = shape[1] / frame.seen_width()
        for quad in quads:
            points = [(x * scale, y * scale) for x, y in (frame.seen(point) for point in quad)]
            draw.polygon(_clipped(points), fill=1)
            draw.line(_clipped([*points, points[0]]), fill=1, width=2 * _MARK_MARGIN_PX)
    return np.asarray(mask, bool)


def _clipped(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(min(max(x, -1e5), 1e5), min(max(y, -1e5), 1e5)) for x, y in points]


def _lost_text(pages: tuple[Any, Any], glyphs: int) -> str | None:
    before, after = (Counter(_letters(page)) for page in pages)
    if after - before:
        return "letters are there that were not."
    lost = sum((before - after).values())
    return None if lost <= glyphs else f"{lost} letters are gone, and the mark has {glyphs}."


def _letters(page: Any) -> str:
    text: str = page.get_textpage().get_text_range(errors="replace")
    # Hyphens and spaces are put in by guess, by what is near.
    return "".join(letter for letter in text if letter.isalnum())


class _Residue:
    """How far the edges of what was taken off are still edges of the page: 0 is not at all, 1 is as before."""

    def __init__(self) -> None:
        self._strength, self._before, self._after = 0.0, 0.0, 0.0

    def add(self, before: Pixels, after: Pixels) -> None:
        for axis in (0, 1):
            mark, left = np.diff(before - after, axis=axis), np.diff(after, axis=axis)
            # The page's own letters have stronger edges than a mark that is seen through: they say nothing of it.
            edges = np.abs(mark)[np.abs(mark) > _MAX_ROUNDING_LEVELS]
            own = np.abs(left) > _MIN_EDGE_RATIO * (np.percentile(edges, 75) if edges.size else 0)
            mark, left = np.where(own, 0, mark), np.where(own, 0, left)
            self._strength += float((mark * mark).sum())
            self._before += float((mark * (mark + left)).sum())
            self._after += float((mark * left).sum())

    def shares(self) -> tuple[float, float]:
        if self._strength == 0:
            return 0.0, 0.0  # it was not seen
        return _share(self._before / self._strength), _share(self._after / self._strength)


def _share(value: float) -> float:
    return round(min(max(value, 0.0), 9.0), 4)

"""A second way to fill in what lies under a mark: a network that continues the picture around it.

The solver computes what shines through and spans a membrane over the rest; the network (MI-GAN) invents structure. It
is an optional file that ``scripts/weights`` fetches: without it the solver's result is the only one.
"""

import functools
from collections.abc import Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye import weights
from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import Mask, Picture

_WINDOW_PX = 512  # the size that the network was trained on
_CONTEXT_PX = 96  # that it sees around a hole
_OVERLAP_PX = 128  # of windows over one hole
# The network's hole is wider than what is pasted: the rim of a mark must not tell it what to draw.
_GROWN_PX = 4
MAX_WINDOWS = 24  # each takes about a second


@functools.cache
def is_available() -> bool:
    """Whether the network's file is installed."""
    return weights.INPAINTER.file.is_file()


def inpaint(picture: Picture, hole: Mask, *, frugal: bool = False) -> Picture | None:
    """A copy of the picture whose hole the network has filled; no pixel outside of it is changed.

    None where the hole needs too many windows.
    """
    windows = list(_windows(hole))
    if len(windows) > MAX_WINDOWS:
        return None
    result = picture.copy()
    left = hole.copy()
    for window in windows:
        part = left[window]
        if not part.any():
            continue
        # Smooth ground in place of the mark: with a black hole the network draws faces into it.
        ground = fill(result[window].astype(np.float32), part)
        drafted = np.clip(np.rint(ground), 0, 255).astype(np.uint8)
        wide = cv2.dilate(part.view(np.uint8), np.ones((2 * _GROWN_PX + 1,) * 2, np.uint8)).view(np.bool_)
        drawn = weights.draw(drafted, ~wide, frugal=frugal)
        result[window][part] = drawn[part]
        left[window] = False
    return result


def _windows(hole: Mask) -> Iterator[tuple[slice, slice]]:
    """Windows over the hole: one for each group of its parts that fits into it, several over a larger group."""
    near = cv2.dilate(hole.view(np.uint8), np.ones((_CONTEXT_PX + 1,) * 2, np.uint8))
    _, _, boxes, _ = cv2.connectedComponentsWithStats(near, connectivity=8, ltype=cv2.CV_32S)
    reach = _CONTEXT_PX // 2
    for left, top, width, height in boxes[1:, :4].tolist():
        rows = _cuts(top + reach, top + height - reach, hole.shape[0])
        columns = _cuts(left + reach, left + width - reach, hole.shape[1])
        yield from ((row, column) for row in rows for column in columns if hole[row, column].any())


def _cuts(first: int, last: int, length: int) -> list[slice]:
    """Windows over a stretch of a side, equally far apart, that begin and end within the side."""
    side = min(_WINDOW_PX, length)
    start, end = max(0, first), min(length, last)
    inner = max(1, side - 2 * _CONTEXT_PX)
    if end - start <= inner or side == length:
        begins: NDArray[np.intp] = np.array([(start + end - side) // 2])
    else:
        count = -(-(end - start - inner) // (side - _OVERLAP_PX)) + 1
        begins = np.linspace(start - _CONTEXT_PX, end + _CONTEXT_PX - side, count).astype(np.intp)
    return [slice(begin, begin + side) for begin in sorted({min(max(0, int(b)), length - side) for b in begins})]

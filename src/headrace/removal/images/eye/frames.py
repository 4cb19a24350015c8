"""Bars and frames of one colour at the borders of a picture: letterboxes, pillarboxes, passe-partouts. Never a mark."""

import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.hinting import Rectangle
from headrace.removal.images.eye.model import Picture

_MAX_SPREAD_LEVELS = 8  # of a line's pixels, but for its outliers: files add noise
_OUTLIER_PERCENT = 1.0
_MAX_DRIFT_LEVELS = 8  # of a line's mean from the first line's
_MIN_SHARE, _MAX_SHARE = 0.015, 0.45  # of the picture's side
_MARGIN_PX = 4  # the edge of a bar is smeared into the picture
_MAX_SAMPLES = 512  # pixels of a line
# A bar ends where the picture begins. If less of the next lines differs, plain ground continues behind a mark or a
# product; pixels that differ by more levels inside a bar are a mark on it.
_MIN_PICTURE_RATIO, _MIN_NEXT_LINES_RATIO = 0.4, 0.05
_DRAWN_LEVELS, _MIN_DRAWN_PX = 24, 12
_RINGING_PX = 8  # of compression, beside the picture


def find_bars(picture: Picture) -> tuple[Rectangle, ...]:
    """The bars at the four borders: left, top, width, height."""
    height, width = picture.shape[:2]
    top, bottom = (_depth(each) for each in (picture, picture[::-1]))
    sideways = picture.transpose(1, 0, 2)
    left, right = (_depth(each) for each in (sideways, sideways[::-1]))
    bars = {
        (0, 0, width, top): top,
        (0, height - bottom, width, bottom): bottom,
        (0, 0, left, height): left,
        (width - right, 0, right, height): right,
    }
    return tuple(bar for bar, depth in bars.items() if depth)


def _depth(lines: NDArray[np.uint8]) -> int:
    """How many lines from the first on have its one colour, with the margin; 0 for no bar."""
    most = int(_MAX_SHARE * len(lines))
    step = max(1, lines.shape[1] // _MAX_SAMPLES)
    first = None
    depth = 0
    for line in lines[:most, ::step]:
        low, high = np.percentile(line, (_OUTLIER_PERCENT, 100 - _OUTLIER_PERCENT), axis=0)
        mean = line.mean(0, dtype=np.float32)
        first = mean if first is None else first
        if (high - low).max() > _MAX_SPREAD_LEVELS or np.abs(mean - first).max() > _MAX_DRIFT_LEVELS:
            break
        depth += 1
    # A plain ground, such as a page's or the sky's, is no bar: it reaches too far.
    if first is None or depth == most or depth < max(_MARGIN_PX, _MIN_SHARE * len(lines)):
        return 0
    begin = depth + _MARGIN_PX
    following = lines[begin : begin + max(_MARGIN_PX, int(_MIN_NEXT_LINES_RATIO * len(lines)))]
    if _differs(following, first, _MAX_DRIFT_LEVELS).mean() < _MIN_PICTURE_RATIO:
        return 0
    if _differs(lines[: max(1, depth - _RINGING_PX)], first, _DRAWN_LEVELS).sum() >= _MIN_DRAWN_PX:
        return 0
    return begin


def _differs(pixels: NDArray[np.uint8], colour: NDArray[np.float32], levels: int) -> NDArray[np.bool_]:
    differs: NDArray[np.bool_] = (np.abs(pixels - colour) > levels).any(-1)
    return differs

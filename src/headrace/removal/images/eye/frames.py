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
    if depth == most or depth < max(_MARGIN_PX, _MIN_SHARE * len(lines)):
        return 0
    return depth + _MARGIN_PX

"""Bars and frames at the borders of a picture, of one colour or a blurred copy of it: letterboxes, pillarboxes,
passe-partouts. Never a mark."""

import cv2
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
# A blurred copy fills both bars of a pair: about as deep, with far less detail than the picture between them, which
# begins at one line for most of its length.
_MAX_BLURRED_DETAIL_LEVELS, _MAX_BLURRED_PEAK_LEVELS, _PEAK_PERCENT = 1.5, 9.0, 99.9
_MIN_DETAIL_RATIO, _MIN_BLURRED_SHARE, _MAX_DEPTH_RATIO = 2.0, 0.05, 1.4
_EDGE_LEVELS, _MIN_EDGE_RATIO, _EDGE_REACH_PX = 6, 0.5, 12


def find_bars(picture: Picture) -> tuple[Rectangle, ...]:
    """The bars at the four borders: left, top, width, height."""
    height, width = picture.shape[:2]
    top, bottom = (_depth(each) for each in (picture, picture[::-1]))
    sideways = picture.transpose(1, 0, 2)
    left, right = (_depth(each) for each in (sideways, sideways[::-1]))
    if not (top or bottom):
        top, bottom = _blurred_depths(picture)
    if not (left or right):
        left, right = _blurred_depths(sideways)
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


def _blurred_depths(lines: NDArray[np.uint8]) -> tuple[int, int]:
    """How many lines from each end on show a blurred copy of the picture, with the margin; 0 for no such pair."""
    step = max(1, lines.shape[1] // _MAX_SAMPLES)
    # Rows of samples, not single ones: detail is what differs from one pixel to the next.
    shown = lines if step == 1 else lines[:, : lines.shape[1] // 2]
    grey = np.ascontiguousarray(shown).mean(2, dtype=np.float32)
    across = np.abs(grey[:, 2:] - 2 * grey[:, 1:-1] + grey[:, :-2])
    if across.shape[1] == 0:
        return 0, 0
    detail = cv2.blur(across.mean(1, keepdims=True), (1, 3))[:, 0]
    calm = detail <= _MAX_BLURRED_DETAIL_LEVELS
    ways = ((grey, calm), (grey[::-1], calm[::-1]))
    depths = [_edge_of(*each) for each in ways]
    if any(depths) and not all(depths):  # sky that borders on its own blur has no edge: bars of a pair are alike
        depth = max(depths)
        of_other = ways[depths.index(0)][1]
        depths = [depth, depth] if of_other[: max(1, depth - _RINGING_PX)].all() else depths
    least = max(_MARGIN_PX, _MIN_BLURRED_SHARE * len(lines))
    if min(depths) < least or max(depths) > min(_MAX_SHARE * len(lines), _MAX_DEPTH_RATIO * min(depths)):
        return 0, 0
    inside = float(detail[depths[0] : len(lines) - depths[1]].mean())
    for marks, profile, depth in ((across, detail, depths[0]), (across[::-1], detail[::-1], depths[1])):
        bar = slice(0, max(1, depth - _RINGING_PX))
        if np.percentile(marks[bar], _PEAK_PERCENT) > _MAX_BLURRED_PEAK_LEVELS:
            return 0, 0  # something is drawn on it
        if inside < _MIN_DETAIL_RATIO * max(float(profile[bar].mean()), 0.1):
            return 0, 0
    return depths[0] + _MARGIN_PX, depths[1] + _MARGIN_PX


def _edge_of(grey: NDArray[np.float32], calm: NDArray[np.bool_]) -> int:
    """The line at which a picture begins behind calm ones: most pixels differ from the line before; 0 for none."""
    reach = (len(calm) if calm.all() else int(np.argmin(calm))) + _EDGE_REACH_PX
    steps = (np.abs(np.diff(grey[: reach + 1], axis=0)) >= _EDGE_LEVELS).mean(1)
    if len(steps) == 0 or steps.max() < _MIN_EDGE_RATIO:
        return 0
    return int(steps.argmax()) + 1


def _differs(pixels: NDArray[np.uint8], colour: NDArray[np.float32], levels: int) -> NDArray[np.bool_]:
    differs: NDArray[np.bool_] = (np.abs(pixels - colour) > levels).any(-1)
    return differs

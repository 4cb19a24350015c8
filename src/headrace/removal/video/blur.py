"""How much detail a filled place has, beside its surroundings: a wide fill over a rich picture is a visible blur."""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.views.stack import square
from headrace.removal.video.frame_removal import Eraser
from headrace.removal.video.planes import Layout
from headrace.removal.video.sampling import Sample

_RIM_PX = 7  # the side of the square that leaves the inside of a filled place
_SURROUNDINGS_PX = (9, 61)  # sides of the squares between which the surroundings lie
_MIN_INSIDE_RATIO = 0.02  # of the frame: less does not catch the eye
_MIN_DETAIL_LEVELS = 1.5  # of the surroundings: on smooth ground a smooth fill is right


def detail_ratio(samples: list[Sample], layout: Layout, erasers: list[Eraser]) -> float | None:
    """The detail inside filled places as a share of that around them, of the place that has least; None without one."""
    ratios = [ratio for each in erasers if (ratio := _of_one(samples, layout, each)) is not None]
    return round(min(ratios), 3) if ratios else None


def _of_one(samples: list[Sample], layout: Layout, eraser: Eraser) -> float | None:
    filled = eraser.filled
    if filled is None or not samples:
        return None
    height, width = samples[0].planes[0].shape
    whole = np.zeros((height, width), np.uint8)
    top, bottom, left, right = eraser.box
    whole[top:bottom, left:right] = filled
    inside = cv2.erode(whole, square(_RIM_PX)).view(np.bool_)
    if inside.sum() < _MIN_INSIDE_RATIO * whole.size:
        return None
    near, far = (cv2.dilate(whole, square(side)).view(np.bool_) for side in _SURROUNDINGS_PX)
    around = far & ~near
    details = [_detail(each.planes[0], layout) for each in samples]
    outside = float(np.median([each[around].mean() for each in details])) if around.any() else 0.0
    if outside < _MIN_DETAIL_LEVELS:
        return None
    return float(np.median([each[inside].mean() for each in details])) / outside


def _detail(bright: NDArray[Any], layout: Layout) -> NDArray[np.float32]:
    levels = (bright >> layout.shift).astype(np.float32)
    detail: NDArray[np.float32] = np.abs(levels - cv2.GaussianBlur(levels, (0, 0), 2))
    return detail

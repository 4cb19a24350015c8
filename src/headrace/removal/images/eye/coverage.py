"""How much of each pixel a mark covers: whole inside a stroke, less along its edge."""

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.model import Mask, Plane, grey_of

# A stroke's full strength is looked for this near; the network's alpha wavers below it.
_STROKE_PX, _MIN_STRENGTH_RATIO = 9, 0.93
# Where coverage hardly changes nearby and is over half, the stroke is whole.
_MAX_FLAT_CHANGE_RATIO, _MIN_COVERED_RATIO = 0.25, 0.6
# The edge is moved to where the picture has one: as far as this, if its contrast (of 1, squared) is over that.
_MAX_EDGE_SHIFT_PX, _MIN_SQUARED_CONTRAST = 2, 1e-4


def covered(picture: Plane, alpha: Plane, loose: Mask, *, step: int = 1) -> tuple[Plane, Plane]:
    """The share of each pixel that is covered, 0 to 1, and alpha of a whole stroke there; nothing outside ``loose``.

    ``step`` is how much coarser alpha is than the picture.
    """
    alpha = alpha * loose
    whole: Plane = np.maximum(
        _MIN_STRENGTH_RATIO * cv2.blur(cv2.dilate(alpha, _square(_STROKE_PX)), (_STROKE_PX, _STROKE_PX)), 0.02
    )
    share = np.clip(alpha / whole, 0, 1)
    change = cv2.dilate(share, _square(5)) - cv2.erode(share, _square(5))
    share[(share > _MIN_COVERED_RATIO) & (change < _MAX_FLAT_CHANGE_RATIO)] = 1
    exact: Plane = np.clip(_guided(picture / np.float32(255), share, _MAX_EDGE_SHIFT_PX * step), 0, 1) * loose
    return exact, whole


def _square(side: int) -> NDArray[np.uint8]:
    return np.ones((side, side), np.uint8)


def _guided(picture: Plane, plane: Plane, reach: int) -> Plane:
    """The plane as what it is nearby of the picture's colour, linearly (a guided filter, He et al. 2010)."""

    def mean(of: Plane) -> Plane:
        return cv2.blur(of, (2 * reach + 1,) * 2)  # type: ignore[return-value]

    around, level = mean(picture), mean(plane)
    both = mean(picture * plane[..., None]) - around * level[..., None]
    pairs = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    rr, rg, rb, gg, gb, bb = (
        mean(picture[..., i] * picture[..., j])
        - around[..., i] * around[..., j]
        + (i == j) * np.float32(_MIN_SQUARED_CONTRAST)
        for i, j in pairs
    )
    # The inverse of the colours' covariance, written out: it is of three by three, at every pixel.
    one, two, three = gg * bb - gb * gb, rb * gb - rg * bb, rg * gb - rb * gg
    four, five, six = rr * bb - rb * rb, rg * rb - rr * gb, rr * gg - rg * rg
    r, g, b = both[..., 0], both[..., 1], both[..., 2]
    slope = np.stack([one * r + two * g + three * b, two * r + four * g + five * b, three * r + five * g + six * b], 2)
    slope /= (rr * one + rg * two + rb * three)[..., None]
    offset = level - 3 * grey_of(slope * around)
    guided: Plane = 3 * grey_of(mean(slope) * picture) + mean(offset)
    return guided

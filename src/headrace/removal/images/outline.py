"""How much of a mark's outline is in a picture: what is left of the mark, whatever texture lies under it.

Edges of the picture run along the mark's only by chance, and as often with as against it. So what the picture's steps
in brightness have in common with the steps that the mark would make is the mark: all of it before, nothing if it is
gone, and less than nothing where more was taken away than was there.
"""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.float32]
Mask = NDArray[np.bool_]

_MARGIN_PX = 64  # pixels beside the mark that tell of its ground
_GROUND_PX = 61  # pixels over which the ground is taken together
_MIN_KNOWN_RATIO = 0.2  # of these, beside the mark
_MAX_FLAT_LEVELS, _MIN_VISIBLE_LEVELS = 5.0, 16.0  # levels: by which flat ground varies, and which one sees on it
_MIN_FLAT_RATIO = 0.2  # of the mark


def outline(picture: Any, alpha: Plane, tint: Plane, loose: Mask) -> float:
    """How much of the mark's outline is present, about 1 for all of it. ``tint`` is its colour times alpha (H W 3)."""
    if not loose.any():
        return 0.0
    here = _around(loose)
    bright = picture[here].mean(2, dtype=np.float32)
    outside = (~loose[here]).astype(np.float32)
    square = (_GROUND_PX, _GROUND_PX)
    ground = cv2.blur(bright * outside, square) / (cv2.blur(outside, square) + np.float32(1e-3))
    expected = _steps(tint[here].mean(2, dtype=np.float32) - alpha[here] * ground)
    whole = (expected**2).sum(2)
    # However steep an edge of the picture is, at each pixel it counts no more than the mark itself.
    found = np.clip((_steps(bright) * expected).sum(2), -whole, whole)
    return float(found.sum()) / max(float(whole.sum()), 1e-6)


def left_of(before: Any, after: Any, alpha: Plane, tint: Plane, loose: Mask) -> float:
    """The share of the outline that is left, with its sign; 0 where there was none to begin with."""
    first = outline(before, alpha, tint, loose)
    return outline(after, alpha, tint, loose) / first if first > 0 else 0.0


def seen_on_flat(after: Any, tight: Mask, loose: Mask) -> float:
    """The share of the mark's pixels on flat ground that still differ from it so much that one sees them.

    On flat ground even a tenth of a strong mark can be read, while the outline as a whole says that nearly all is gone.
    0 where hardly any of the mark lies on flat ground.
    """
    if not loose.any():
        return 0.0
    here = _around(loose)
    picture = after[here].astype(np.float32)
    outside = (~loose[here]).astype(np.float32)
    square = (_GROUND_PX, _GROUND_PX)
    share = cv2.blur(outside, square)
    known = share > _MIN_KNOWN_RATIO
    share = np.maximum(share, np.float32(1e-3))[..., None]
    ground = cv2.blur(picture * outside[..., None], square) / share
    spread = cv2.blur(picture**2 * outside[..., None], square) / share - ground**2
    flat = tight[here] & known & (spread.max(2) < _MAX_FLAT_LEVELS**2)
    if flat.sum() < _MIN_FLAT_RATIO * tight[here].sum() or not flat.any():
        return 0.0
    return float((np.abs(picture - ground).max(2)[flat] > _MIN_VISIBLE_LEVELS).mean())


def _around(loose: Mask) -> tuple[slice, slice]:
    rows, columns = np.flatnonzero(loose.any(1)), np.flatnonzero(loose.any(0))
    return np.s_[
        max(0, int(rows[0]) - _MARGIN_PX) : int(rows[-1]) + _MARGIN_PX,
        max(0, int(columns[0]) - _MARGIN_PX) : int(columns[-1]) + _MARGIN_PX,
    ]


def _steps(plane: Any) -> Plane:
    soft = cv2.GaussianBlur(plane, (0, 0), 1)
    return np.stack([cv2.Sobel(soft, cv2.CV_32F, *way, scale=0.125) for way in ((1, 0), (0, 1))], 2)

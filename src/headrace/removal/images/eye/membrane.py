"""Fills what lies under an opaque mark with the membrane that the surroundings span over the hole."""

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.model import Mask, Plane

_MAX_ROUNDS = 8
_KERNEL = np.array([[0.05, 0.2, 0.05], [0.2, 0, 0.2], [0.05, 0.2, 0.05]], np.float32)


def fill(picture: Plane, hole: Mask) -> Plane:
    """The picture (H W 3, in levels) with the hole filled smoothly from its rim; no pixel outside is changed.

    Pulled down to coarser and coarser sizes until no hole is left, pushed up again, and relaxed at every size.
    """
    return _filled(picture, np.ascontiguousarray(hole).view(np.uint8))


def _filled(picture: Plane, hole: NDArray[np.uint8]) -> Plane:
    height, width = hole.shape
    if not hole.any():
        return picture
    known = (1 - hole).astype(np.float32)
    seen = picture * known[..., None]
    if min(height, width) <= 2 or not known.any():
        mean = seen.sum((0, 1)) / max(float(known.sum()), 1.0)
        flat: Plane = (seen + mean * hole[..., None]).astype(np.float32)
        return flat
    size = ((width + 1) // 2, (height + 1) // 2)
    share = cv2.resize(known, size, interpolation=cv2.INTER_AREA)
    mean = cv2.resize(seen, size, interpolation=cv2.INTER_AREA) / np.maximum(share, 1e-6)[..., None]
    coarse = _filled(mean.astype(np.float32), (share == 0).view(np.uint8))
    guess = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR)
    result = picture.copy()
    cv2.copyTo(guess, hole, result)
    for _ in range(_MAX_ROUNDS):
        cv2.copyTo(cv2.filter2D(result, -1, _KERNEL, borderType=cv2.BORDER_REFLECT), hole, result)
    return result

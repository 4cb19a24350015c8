"""Inpainting for what lies under an opaque mark: what the hole is, and the membrane that its rim spans over it."""

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.eye.model import Mask, Plane

# An island in a mark whose colour differs from the strokes around it by less than this, beside what the mark's outer edge
# does, is a part of the mark that was overlooked; the picture through a letter's eye differs as much as that around it.
_SAME = 0.35
_ROUNDS = 8
_KERNEL = np.array([[0.05, 0.2, 0.05], [0.2, 0, 0.2], [0.05, 0.2, 0.05]], np.float32)


def hole(picture: Plane, mark: Mask) -> Mask:
    """The mark without gaps: islands that go on in its own colour would dye all that is filled around them."""
    shape = mark.shape
    count, labels, boxes, _ = cv2.connectedComponentsWithStats((~mark).view(np.uint8), connectivity=4, ltype=cv2.CV_32S)
    left, top, width, height = boxes[:, :4].T
    outer = (left == 0) | (top == 0) | (left + width == shape[1]) | (top + height == shape[0])
    outer[0] = True
    if outer.all():
        return mark
    named = labels.astype(np.float32)
    beside = cv2.dilate(named, np.ones((9, 9), np.uint8))
    strokes = mark & (cv2.dilate(named, np.ones((3, 3), np.uint8)) == 0) & (beside > 0)
    rim = ~mark & (cv2.dilate(mark.view(np.uint8), np.ones((5, 5), np.uint8)) == 0)
    rim &= cv2.dilate(mark.view(np.uint8), np.ones((9, 9), np.uint8)) > 0

    def means(at: Mask, of: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        pixels = np.bincount(of, minlength=count)
        sums = [np.bincount(of, picture[..., c][at], minlength=count) for c in range(3)]
        return np.stack(sums, 1) / np.maximum(pixels, 1)[:, None], pixels

    stroke, strokes_beside = means(strokes, beside[strokes].astype(np.intp))
    island, _ = means(~mark, labels[~mark].astype(np.intp))
    around, around_pixels = means(rim, labels[rim].astype(np.intp))
    known = outer & (around_pixels > 0) & (strokes_beside > 0)
    if not known.any():
        return mark
    contrast = np.average(np.abs(around - stroke).mean(1)[known], weights=around_pixels[known])
    same = ~outer & (strokes_beside > 0) & (np.abs(island - stroke).mean(1) < _SAME * contrast)
    whole: Mask = mark | same[labels]
    return whole


def fill(picture: Plane, empty: Mask) -> Plane:
    """The picture (H W 3, in levels) with what is empty filled smoothly from its rim; no pixel outside is changed.

    Pulled down to coarser and coarser sizes until no hole is left, pushed up again, and relaxed at every size.
    """
    return _filled(picture, np.ascontiguousarray(empty).view(np.uint8))


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
    for _ in range(_ROUNDS):
        cv2.copyTo(cv2.filter2D(result, -1, _KERNEL, borderType=cv2.BORDER_REFLECT), hole, result)
    return result

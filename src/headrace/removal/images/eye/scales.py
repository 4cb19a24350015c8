"""At which size a mark is seen: strokes that are wider than the network's view are seen on a smaller copy only."""

from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.model import MAX_JOINED_GAP_PX, Levels, Mask
from headrace.removal.images.eye.repeats import ODDS

# Strokes of this width, in pixels of the smaller copy, are hard to see on the larger one; of the second, hard to solve.
_MIN_WIDE_PX, _MIN_VERY_WIDE_PX = 14, 30
_CORE_PX, _MIN_CERTAIN_LEVELS = 9, 200  # of a wide stroke's width a square of this side is certain, in 255ths
# The mean odds that a part of the mark must have on the smaller copy and on one smaller still, unless the larger copy
# shows so much of it (the sun over the sea has less on one of them); and both together to speak for the smaller copy.
_MIN_FIRM_ODDS, _MIN_SHOWN_RATIO, _MIN_SURE_ODDS = 3.0, 0.3, 8.0
# What is shown, or lies no further from something sure than it is long itself, needs only so much of both and of each.
_MIN_SHOWN_ODDS, _MIN_EACH_ODDS = 6.0, 1.0
_BLUR_PX = 9  # pixels of the larger copy around what it shows
_MAX_RIM_RATIO = 0.45  # of a wide stroke of which the larger copy shows the rims alone it shows less than this


# Where a copy of half the size sees a part of a mark for certain, and the larger one so much of the same part, the rest
# of it is entered; but not this near to what the larger one shows, nor where that is so sure of seeing none (a letter's
# counter), unless the mark is so strong that it hides the picture.
_MIN_PART_LEVELS, _MIN_CONFIRMED_RATIO, _RIM_PX, _MAX_DENIED_LEVELS, _MIN_HIDING_LEVELS = 128, 0.3, 7, 8, 200


class Verdict(NamedTuple):
    """Of what a smaller copy shows of a mark: shares of its pixels, and which are left to the larger copy."""

    hidden: float  # in wide strokes, and not seen on the larger copy
    very_wide: float  # in strokes that are better solved on the smaller one
    others: Mask  # not wide and seen on the larger copy, or seen here only and not for certain


def may_be_wide(likely: Levels) -> bool:
    """Whether a copy shows any wide stroke at all."""
    return bool(
        cv2.erode((likely >= _MIN_CERTAIN_LEVELS).view(np.uint8), np.ones((_CORE_PX, _CORE_PX), np.uint8)).any()
    )


def fill_in(seen: Levels, smaller: Levels, tight: Mask, certainty: Levels) -> None:
    """Enters into the planes and masks what only a copy of half the size shows of the marks: the inside of strokes."""
    likely = _enlarged(smaller[0], tight.shape)
    count, labels = cv2.connectedComponents(
        (likely >= _MIN_PART_LEVELS).view(np.uint8), connectivity=8, ltype=cv2.CV_32S
    )
    certain = likely >= _MIN_CERTAIN_LEVELS
    label = labels[certain]
    shown = np.bincount(label, tight[certain], count) / np.bincount(label, minlength=count).clip(1)
    missing = certain & ~tight & (shown >= _MIN_CONFIRMED_RATIO)[labels]
    if not missing.any():
        return
    # Along the edges of what it shows the larger copy knows better how strong the mark is; under ink that hides all
    # there is nothing to know, and a rim that stays would stain what is filled in.
    beside = cv2.dilate(tight.view(np.uint8), np.ones((_RIM_PX, _RIM_PX), np.uint8)).view(np.bool_)
    apart = cv2.dilate((missing & ~beside).view(np.uint8), np.ones((_RIM_PX + 2, _RIM_PX + 2), np.uint8)).view(np.bool_)
    missing &= apart & (seen[0] >= _MAX_DENIED_LEVELS) | (_enlarged(smaller[1], tight.shape) >= _MIN_HIDING_LEVELS)
    of = np.zeros(count, np.uint8)  # each part is as certain as what is known of it
    np.maximum.at(of, labels[tight].astype(np.intp), certainty[tight])
    for plane, small in zip(seen, smaller, strict=True):
        plane[missing] = _enlarged(small, plane.shape)[missing]
    tight |= missing
    certainty[missing] = of[labels[missing]]


def _enlarged(plane: Levels, size: tuple[int, ...]) -> Levels:
    return cv2.resize(plane, size[::-1], interpolation=cv2.INTER_LINEAR)  # type: ignore[return-value]


def compare(tight: Mask, likely: Levels, coarse: Levels, larger: Mask) -> Verdict:
    """What a copy of half the size shows of the mark, beside what the ``larger`` one does."""
    near = cv2.dilate(tight.view(np.uint8), np.ones((MAX_JOINED_GAP_PX, MAX_JOINED_GAP_PX), np.uint8))
    count, labels, boxes, _ = cv2.connectedComponentsWithStats(near, connectivity=8, ltype=cv2.CV_32S)
    label = labels[tight]
    pixels = np.maximum(np.bincount(label, minlength=count), 1)

    def mean(values: NDArray[np.generic]) -> NDArray[np.float64]:
        return np.bincount(label, values[tight], count) / pixels

    known = cv2.dilate(larger.view(np.uint8), np.ones((_BLUR_PX, _BLUR_PX), np.uint8))
    shown = cv2.resize(known, tight.shape[::-1], interpolation=cv2.INTER_NEAREST)
    # The distance to a stroke's edge is a quarter of its width in the mean.
    width = 4 * mean(cv2.distanceTransform(tight.view(np.uint8), cv2.DIST_L2, 3))
    here, below, there = mean(ODDS[likely]), mean(ODDS[coarse]), mean(shown) >= _MIN_SHOWN_RATIO
    firm = np.minimum(here, below) >= _MIN_FIRM_ODDS
    sure = firm & (here + below >= _MIN_SURE_ODDS)
    enough = (np.minimum(here, below) >= _MIN_EACH_ODDS) & (here + below >= _MIN_SHOWN_ODDS)
    # Small letters run together on a small copy: their strokes are as wide as the larger one shows them.
    narrow = there & (
        (width < _MIN_WIDE_PX) | (mean(shown) >= _MAX_RIM_RATIO) & (_widths(larger, labels, count) < _MIN_WIDE_PX)
    )
    others = tight & (narrow | ~(firm | there | enough & _beside(boxes, sure)))[labels]
    certain = (likely[tight] >= _MIN_CERTAIN_LEVELS) & (coarse[tight] >= _MIN_CERTAIN_LEVELS)
    hidden = (sure & (width >= _MIN_WIDE_PX))[label] & certain & (shown[tight] == 0)
    very_wide = ((sure | there & enough) & (width >= _MIN_VERY_WIDE_PX))[label]
    some = max(1, tight.sum() - others.sum())
    return Verdict(float(hidden.sum() / some), float(very_wide.sum() / some), others)


def _widths(larger: Mask, labels: NDArray[np.number[Any]], count: int) -> NDArray[np.float64]:
    """How wide the larger copy shows the strokes of every part, in pixels of the smaller one."""
    part = cv2.resize(labels.astype(np.float32), larger.shape[::-1], interpolation=cv2.INTER_NEAREST)[larger]
    part = part.astype(np.intp)
    depth = cv2.distanceTransform(larger.view(np.uint8), cv2.DIST_L2, 3)[larger]
    step = larger.shape[1] / labels.shape[1]
    widths: NDArray[np.float64] = (
        4 / step * np.bincount(part, depth, count) / np.bincount(part, minlength=count).clip(1)
    )
    return widths


def _beside(boxes: NDArray[np.number[Any]], sure: Mask) -> Mask:
    """Which boxes (left, top, width, height) lie no further from a sure one than they are long: letters of its word."""
    left, top, width, height = boxes[:, :4].T
    gaps = [
        np.maximum(np.maximum(start - (start + length)[k], start[k] - (start + length)), 0)
        for k in np.flatnonzero(sure)
        for start, length in ((left, width), (top, height))
    ]
    if not gaps:
        return sure
    apart = np.min([np.maximum(across, down) for across, down in zip(gaps[::2], gaps[1::2], strict=True)], 0)
    beside: Mask = apart <= np.maximum(width, height)
    return beside

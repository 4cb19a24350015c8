"""A second look at a result, before it is written: what the eye still sees of the mark, and what it had overlooked."""

from dataclasses import replace
from typing import NamedTuple

import cv2
import numpy as np

from headrace.removal.images.eye.inference import Box, Detector, cut_up
from headrace.removal.images.eye.model import Detection, Levels, Mask, Picture, Plane, grey_of, loosened

_MARGIN_PX = 128  # around the changed pixels
MAX_PIXELS = 3_000_000  # of the result; more would take too long
_MAX_GAP_RATIO = 0.35  # of a mark's shorter side: parts at most this far from it belong to it,
_MIN_GAP_PX, _MAX_GAP_PX = 10, 60  # within these limits
# Residue has at least this probability (in 255ths) on at least this many pixels.
_MIN_RESIDUE_LEVELS = 128
_MIN_RESIDUE_PIXELS = 40


class Check(NamedTuple):
    left: float  # what is seen of the mark now, as a share of what was seen before
    rest: Detection | None  # what should be taken off the result, too


def check(result: Picture, detection: Detection, *, threads: int) -> Check | None:
    """What a second look at the result shows; None where so much was changed that it would take too long."""
    boxes = boxes_around(detection.loose)
    if sum((box[0].stop - box[0].start) * (box[1].stop - box[1].start) for box in boxes) > MAX_PIXELS:
        return None
    seen, looked = Detector(threads, frugal=False).fine(result, boxes)
    before = float(detection.likely[detection.loose].astype(np.float64).sum())
    near = _near(detection) & looked
    if detection.allowed is not None:
        near &= detection.allowed
    after = float(seen[0][near].astype(np.float64).sum())
    left = min(1.0, after / max(before, 1.0))
    # Only beside what was taken off: what shows inside it, through an opening, was left on purpose.
    over = near & ~detection.loose & (seen[0] >= _MIN_RESIDUE_LEVELS)
    rest = _rest(detection, seen, over) if int(over.sum()) >= _MIN_RESIDUE_PIXELS else None
    return Check(left, rest)


def boxes_around(loose: Mask) -> list[Box]:
    """Tiles around what was changed."""
    rows, columns = np.flatnonzero(loose.any(1)), np.flatnonzero(loose.any(0))
    if len(rows) == 0:
        return []
    top, bottom = max(0, int(rows[0]) - _MARGIN_PX), min(loose.shape[0], int(rows[-1]) + _MARGIN_PX)
    left, right = max(0, int(columns[0]) - _MARGIN_PX), min(loose.shape[1], int(columns[-1]) + _MARGIN_PX)
    return [box for box in cut_up(bottom - top, right - left, top, left) if loose[box].any()]


def _near(detection: Detection) -> Mask:
    """The mark and what lies so near that it may belong to it: a glow, a shadow, a letter that was overlooked."""
    near = detection.loose.copy()
    for region in detection.regions:
        reach = int(np.clip(_MAX_GAP_RATIO * min(region.width, region.height), _MIN_GAP_PX, _MAX_GAP_PX))
        rows = slice(max(0, region.top - reach), region.top + region.height + reach)
        columns = slice(max(0, region.left - reach), region.left + region.width + reach)
        part = detection.loose[rows, columns].view(np.uint8)
        near[rows, columns] |= cv2.dilate(part, np.ones((2 * reach + 1,) * 2, np.uint8)).view(np.bool_)
    return near


def _rest(detection: Detection, seen: Levels, over: Mask) -> Detection:
    loose = loosened(over)
    if detection.allowed is not None:
        loose &= detection.allowed
    return replace(
        detection,
        tight=over,
        loose=loose,
        certainty=over.view(np.uint8) * np.uint8(255),
        likely=seen[0] * loose,
        strength=seen[1] * loose,
        tint=np.ascontiguousarray(np.moveaxis(seen[2:5], 0, 2)) * loose[..., None],
        doubt=seen[5].copy(),
        finer=None,
    )


def residue(picture: Plane, tight: Mask) -> float:
    """How much the mark's outline stands out: the step in brightness across it, summed."""
    grey = grey_of(picture)
    edge = cv2.morphologyEx(tight.view(np.uint8), cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)).view(np.bool_)
    across = np.abs(cv2.Laplacian(cv2.GaussianBlur(grey, (0, 0), 1), cv2.CV_32F))
    return float(across[edge].sum())

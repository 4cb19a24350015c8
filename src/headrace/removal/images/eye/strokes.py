"""Strokes in a user-drawn box: ink that the network missed, recognised by its difference from the ground.

Who draws a box knows that there is a mark in it. What stands out inside it, as the seen part of the mark does and as
hardly anything around the box does, is the rest of the mark. Nothing is known of its strength, so it is filled in.
"""

from collections.abc import Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import UNKNOWN_ERROR_LEVELS, Levels, Mask, Picture, Plane, loosened

Box = tuple[slice, slice]

_MAX_PIXELS = 4_000_000  # of a box with what is around it
_MARGIN_RATIO, _MIN_MARGIN_PX = 0.35, 16  # around a box, as a share of its shorter side, and in pixels
# The surroundings must have this share of the box's pixels to show what the picture itself looks like.
_MIN_SURROUNDINGS = 0.3
# The ground is the median over squares of so much of the box's shorter side, within these limits.
_GROUND_RATIO, _MIN_GROUND_PX, _MAX_GROUND_PX = 0.5, 9, 151
_MIN_SEEN_PIXELS = 30  # that tell how the mark differs from its ground
_MIN_LEVELS = 14.0  # smaller differences are the picture's own grain
_RARE_PERCENT = 98.5  # of the surroundings stand out less than missed ink
# Of the mark's difference: so much of it, the least that tells, and no more in another direction.
_MIN_SHARES, _MAX_ASIDE = (0.4, 0.5, 0.6, 0.7), 0.45
# A stroke's edge, or its glow: so far from it, as a share of the box's shorter side; more of the mark than hardly any
# pixel around the box has (percent), within these limits.
_REACH_RATIO, _FADING_PERCENT, _FADING_LIMITS_RATIO = 0.1, 95.0, (0.1, 0.3)
# Such pixels are so much more frequent than around the box, and so frequent
_MIN_TIMES_OUTSIDE = 4.0
_MIN_FREQUENCY = 0.004
_MAX_ALIKE_OUTSIDE = 0.04  # of the surroundings: if more looks like the mark, they cannot be separated
_MIN_STROKE_PIXELS = 6


def claim(picture: Picture, seen: Levels, tight: Mask, allowed: Mask) -> Mask:
    """Enters overlooked strokes into ``tight``, and that they hide the picture into the planes ``seen``."""
    claimed = np.zeros_like(tight)
    for box in _boxes(allowed):
        found = _strokes(picture[box], tight[box], allowed[box]) & ~tight[box]
        claimed[box] |= found
    tight |= claimed
    seen[0][claimed] = seen[1][claimed] = 255
    seen[5][claimed] = UNKNOWN_ERROR_LEVELS
    seen[2:5, claimed] = picture[claimed].T
    return claimed


def _boxes(allowed: Mask) -> Iterator[Box]:
    """Each box that was drawn, with its surroundings."""
    _, _, boxes, _ = cv2.connectedComponentsWithStats(allowed.view(np.uint8), connectivity=4)
    for left, top, width, height, _ in boxes[1:].tolist():
        around = max(_MIN_MARGIN_PX, int(_MARGIN_RATIO * min(width, height)))
        if (width + 2 * around) * (height + 2 * around) <= _MAX_PIXELS:
            yield (
                slice(max(0, top - around), top + height + around),
                slice(max(0, left - around), left + width + around),
            )


def _strokes(picture: Picture, tight: Mask, inside: Mask) -> Mask:
    nothing = np.zeros_like(tight)
    outside = ~inside
    if outside.sum() < _MIN_SURROUNDINGS * inside.sum():
        return nothing
    rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
    short = int(min(rows[-1] - rows[0], columns[-1] - columns[0])) + 1
    differs = picture - _ground(picture, tight, short)
    way = _way(differs, tight, inside)
    if way is None:
        return nothing
    length = float(np.linalg.norm(way))
    share: Plane = (differs @ (way / length**2)).astype(np.float32)
    aside = np.sqrt(((differs - share[..., None] * way) ** 2).sum(2)) / length
    straight = aside <= _MAX_ASIDE * np.maximum(share, 1)
    for least in _MIN_SHARES:
        alike = straight & (share >= least)
        elsewhere = float(alike[outside].mean())
        if elsewhere <= _MAX_ALIKE_OUTSIDE and alike[inside & ~tight].mean() >= max(
            _MIN_FREQUENCY, _MIN_TIMES_OUTSIDE * elsewhere
        ):
            break
    else:
        return nothing
    core = _large(alike & inside)
    reach = 2 * max(1, int(_REACH_RATIO * short)) + 1
    near = cv2.dilate(core.view(np.uint8), np.ones((reach, reach), np.uint8)).view(np.bool_)
    fading = float(np.clip(np.percentile(share[outside], _FADING_PERCENT), *_FADING_LIMITS_RATIO))
    strokes: Mask = core | near & inside & (share >= fading)
    return strokes


def _ground(picture: Picture, tight: Mask, short: int) -> Plane:
    side = int(np.clip(_GROUND_RATIO * short, _MIN_GROUND_PX, _MAX_GROUND_PX)) | 1
    bare = fill(picture.astype(np.float32), loosened(tight)) if tight.any() else picture
    return cv2.medianBlur(bare.astype(np.uint8), side).astype(np.float32)


def _way(differs: Plane, tight: Mask, inside: Mask) -> NDArray[np.float32] | None:
    """By which colour the mark differs from its ground: where it is seen, or else where the box stands out most."""
    far = np.sqrt((differs**2).sum(2))
    if tight.sum() >= _MIN_SEEN_PIXELS:
        ink = tight & (far >= np.median(far[tight]))
    else:
        ink = inside & (far >= max(_MIN_LEVELS, float(np.percentile(far[~inside], _RARE_PERCENT))))
        if ink.sum() < max(_MIN_SEEN_PIXELS, _MIN_FREQUENCY * inside.sum()):
            return None
        lighter = ink & (differs.sum(2) > 0)
        ink = max(lighter, ink & ~lighter, key=lambda way: float(far[way].sum()))
    way: NDArray[np.float32] = differs[ink].mean(0)
    return way if np.linalg.norm(way) >= _MIN_LEVELS else None


def _large(mask: Mask) -> Mask:
    _, labels, boxes, _ = cv2.connectedComponentsWithStats(mask.view(np.uint8), connectivity=8)
    large = boxes[:, cv2.CC_STAT_AREA] >= _MIN_STROKE_PIXELS
    large[0] = False
    found: Mask = large[labels]
    return found

"""A mark on smooth ground, where the surroundings predict what lies under it to within its grain.

There a pixel of the mark that the network overlooked shows at once, and is seen as a bright spot in the result. And
there what is filled in lacks the grain of the picture: a smooth letter in a grainy sky is a ghost.
"""

from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.blocks import Block
from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import Mask, Picture, Plane, grey_of, loosened

# Ground is smooth where it strays from its own blur by no more, in levels: to close gaps, and to copy grain.
_MAX_GAP_ROUGH_LEVELS, _MAX_GRAIN_ROUGH_LEVELS = 2.0, 5.0
_MAX_SKY_ROUGH_LEVELS, _MIN_SKY_RATIO = 2.5, 0.9  # ground for the choice of a fill, and the share of the mark on it
_AROUND_PX = 64  # of a mark, to measure its ground
_RING_PX, _MARGIN_PX = 25, 6  # the surroundings that tell of the ground: how wide, and how far from the mask
_CLOSING_PX = 7  # gaps of a mask that are narrower
# Of a gap: its step from the predicted ground beside that of the strokes around it, whose step is a multiple of the
# ground's variation; its alpha beside theirs; and its size, in pixels and beside the mask.
_MIN_STEP_RATIO, _MIN_NOISE_RATIO, _MAX_FAINT_RATIO = 0.7, 4.0, 0.6
_MAX_GAP_PIXELS, _MAX_GAP_RATIO = 64, 0.02
_MIN_PIXELS = 200  # of a mark's inside and of its surroundings, to measure either
_STROKES_PX = 121  # strokes this near tell what a gap's alpha and colour are
_GRAIN_BLUR_PX = 3.0
_MAX_GRAIN_RATIO, _MIN_GRAIN_LEVELS = 2.5, 0.4  # times the usual grain: more is an edge; less than the second is unseen
_GRAIN_SIDE_PX = 15  # grain is compared over squares
_SOURCE_MARGIN_PX = 8  # what is nearer to the mark has some of it
# How far from a pixel its grain may come, and from where.
_SHIFTS_PX = (24, 40, 64, 96, 144, 208)
_NEIGHBOUR_STEPS_PX = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, 1), (-1, 1), (1, -1))


def lies_on_smooth_ground(picture: Picture, loose: Mask) -> bool:
    """Whether nearly all of a mark does: there the membrane is right, and a network that draws leaves patterns."""
    rows, columns = np.flatnonzero(loose.any(1)), np.flatnonzero(loose.any(0))
    if not len(rows):
        return False
    here = np.s_[
        max(0, int(rows[0]) - _AROUND_PX) : int(rows[-1]) + _AROUND_PX,
        max(0, int(columns[0]) - _AROUND_PX) : int(columns[-1]) + _AROUND_PX,
    ]
    mark = np.ascontiguousarray(loose[here])
    smooth = roughness(picture[here].astype(np.float32), _dilated(mark, _MARGIN_PX)) < _MAX_SKY_ROUGH_LEVELS
    return bool(smooth[mark].mean() >= _MIN_SKY_RATIO)


def with_gaps_closed(block: Block) -> Block:
    """The block with its mask, alpha and colour entered where the network left small gaps in a mark."""
    hidden = _dilated(block.tight, _MARGIN_PX)
    ring = _dilated(hidden, _RING_PX) & ~hidden
    inside = cv2.erode(block.tight.view(np.uint8), _square(5)).view(np.bool_)
    if inside.sum() < _MIN_PIXELS or ring.sum() < _MIN_PIXELS:
        return block
    smooth = roughness(block.picture, hidden) < _MAX_GAP_ROUGH_LEVELS
    inside &= smooth
    if inside.sum() < _MIN_PIXELS or (ring & smooth).sum() < _MIN_PIXELS:
        return block
    soft: Plane = cv2.blur(block.picture, (3, 3)).astype(np.float32)
    off = grey_of(np.abs(soft - cv2.blur(fill(block.picture, hidden), (3, 3))))
    varied = _nearby_mean(grey_of(np.abs(soft - cv2.blur(block.picture, (13, 13)))), ring)
    step, usual = _nearby_mean(off, inside), _nearby_mean(block.alpha, inside)
    closed = cv2.morphologyEx(block.tight.view(np.uint8), cv2.MORPH_CLOSE, _square(_CLOSING_PX)).view(np.bool_)
    clear = smooth & (step > _MIN_NOISE_RATIO * (varied + 1)) & (off > _MIN_STEP_RATIO * step)
    gaps = _small(closed & clear & (block.alpha < _MAX_FAINT_RATIO * usual), int(block.tight.sum()))
    if not gaps.any():
        return block
    alpha, tint = block.alpha.copy(), block.tint.copy()
    alpha[gaps] = usual[gaps]
    for channel in range(3):
        tint[gaps, channel] = _nearby_mean(block.tint[..., channel], inside)[gaps]
    return replace(block, tight=block.tight | gaps, loose=block.loose | loosened(gaps), alpha=alpha, tint=tint)


def with_grain(picture: Plane, fresh: Plane, loose: Mask, rough: Plane) -> Plane:
    """The fresh picture, with as much grain inside a mark on smooth ground as there is beside it in the marked one."""
    copied = _copied_grain(picture, loose, rough)
    if copied is None:
        return fresh
    own = fresh - cv2.GaussianBlur(fresh, (0, 0), _GRAIN_BLUR_PX)
    side = (_GRAIN_SIDE_PX, _GRAIN_SIDE_PX)
    power, wanted = (grey_of(cv2.blur(grain**2, side).astype(np.float32)) for grain in (own, copied))
    lacking: Plane = np.sqrt(np.clip(1 - power / np.maximum(wanted, np.float32(1e-3)), 0, 1)).astype(np.float32)
    grained: Plane = fresh + lacking[..., None] * copied
    return grained


def _copied_grain(picture: Plane, loose: Mask, rough: Plane) -> Plane | None:
    """Grain for a mark's pixels on smooth ground, from beside it (H W 3, else 0). None where there is none."""
    grain = picture - cv2.GaussianBlur(picture, (0, 0), _GRAIN_BLUR_PX)
    strength = cv2.blur(grey_of(np.abs(grain)), (5, 5))
    smooth = rough < _MAX_GRAIN_ROUGH_LEVELS
    source = ~_dilated(loose, _SOURCE_MARGIN_PX) & smooth
    if source.sum() < _MIN_PIXELS:
        return None
    usual = float(np.median(strength[source]))
    if usual < _MIN_GRAIN_LEVELS:
        return None
    source &= strength < _MAX_GRAIN_RATIO * usual
    copied = np.zeros_like(picture)
    rows, columns = np.nonzero(loose & smooth)
    for reach in _SHIFTS_PX:
        for down, across in _NEIGHBOUR_STEPS_PX:
            y, x = rows + reach * down, columns + reach * across
            found = (y >= 0) & (y < loose.shape[0]) & (x >= 0) & (x < loose.shape[1])
            found[found] = source[y[found], x[found]]
            copied[rows[found], columns[found]] = grain[y[found], x[found]]
            rows, columns = rows[~found], columns[~found]
    return copied


def roughness(picture: Plane, hidden: Mask) -> Plane:
    """How far the picture around each pixel strays from its own blur, in levels, without what is hidden."""
    grey, outside = grey_of(picture), (~hidden).astype(np.float32)
    blurred = cv2.blur(grey * outside, (9, 9)) / (cv2.blur(outside, (9, 9)) + np.float32(1e-3))
    strays = outside * (grey - blurred) ** 2
    total, seen = (
        # Deep in a mark nothing of the picture is near: what is further away speaks for it.
        cv2.blur(plane, (31, 31)) + 1e-2 * cv2.blur(plane, (95, 95)) + 1e-4 * cv2.blur(plane, (287, 287))
        for plane in (strays, outside)
    )
    rough: Plane = np.sqrt(np.maximum(total, 0) / (seen + np.float32(1e-9)))
    return rough


def _nearby_mean(plane: Plane, where: Mask) -> Plane:
    """The mean of what lies in ``where`` around each pixel; of all of it where nothing is near."""
    side = (_STROKES_PX, _STROKES_PX)
    whole = np.float32(plane[where].mean())
    share = cv2.blur(where.astype(np.float32), side) + np.float32(1e-3)
    mean: Plane = (cv2.blur(plane * where, side) + np.float32(1e-3) * whole) / share
    return mean


def _small(gaps: Mask, mark_pixels: int) -> Mask:
    """The gaps without the large ones, which are parts of the picture."""
    _, labels, boxes, _ = cv2.connectedComponentsWithStats(gaps.view(np.uint8), connectivity=8, ltype=cv2.CV_32S)
    small = boxes[:, cv2.CC_STAT_AREA] <= max(_MAX_GAP_PIXELS, _MAX_GAP_RATIO * mark_pixels)
    small[0] = False
    found: Mask = small[labels]
    return found


def _square(side: int) -> NDArray[np.uint8]:
    return np.ones((side, side), np.uint8)


def _dilated(mask: Mask, pixels: int) -> Mask:
    return cv2.dilate(mask.view(np.uint8), _square(2 * pixels + 1)).view(np.bool_)

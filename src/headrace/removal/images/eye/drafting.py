"""A first draft of what lies under a mark: computed where it shines through, filled in where it does not."""

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.blocks import Block
from headrace.removal.images.eye.coverage import covered
from headrace.removal.images.eye.inks import Points, read
from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import UNKNOWN_ERROR_LEVELS, Mask, Plane, grey_of
from headrace.removal.images.eye.refining import Draft

At = tuple[NDArray[np.intp], ...]

# Beyond this nothing of the picture is left to compute with.
_MAX_ALPHA = 0.93
# Inks are read off this near to the unmarked picture.
_RIM_PX = 10
# Roughness is read off the surroundings: squares of these sides, and how much each counts.
_SQUARE_SIDES_AND_WEIGHTS = ((31, 1.0), (95, 1e-2), (287, 1e-4))
# Ground on which filling in is right; and on which what files smear into a mark's margin is seen.
MAX_SMOOTH_LEVELS, _MAX_SMEARED_LEVELS = 1.3, 2.5
# What compression changes, in levels; how far alpha is off after all.
GRAIN_LEVELS, _ALPHA_ERROR = 2.5, 0.03
# What filling in misses: so much of how far the picture strays from its own blur. Near a mark's rim the narrow blur
# counts, eight pixels in the next, sixteen in the widest; and this many levels always. Fitted to calibration
# photographs.
_BLUR_WIDTHS_PX, _MISSED_RATIO, _MIN_MISSED_LEVELS = (9, 33, 97), 0.83, 1.77
_DEFAULT_ERROR_LEVELS = 30.0  # levels passed to the refiner where the error is unknown
_MAX_DEPTH_PX = 1024  # pixels; more makes no difference


def drafted(block: Block) -> Draft:
    """What lies under the mark, computed and filled in, and the two weighed by what is known of their errors."""
    strays = strays_of(block.picture, block.loose)
    rough = strays[0]
    # From the mark's own rim: the picture shows through the margin around it. But on smooth ground files smear the mark
    # visibly into the margin, and there is nothing to lose.
    membrane = fill(block.picture, block.tight | (block.loose & (rough < _MAX_SMEARED_LEVELS)))
    share, whole = covered(block.picture, block.alpha, block.loose, step=block.step)
    change = cv2.morphologyEx(share, cv2.MORPH_GRADIENT, np.ones((5, 5), np.uint8))
    deep = cv2.distanceTransform(block.loose.view(np.uint8), cv2.DIST_L2, 3)
    at = np.nonzero(block.loose)
    marked, smooth, part = block.picture[at], membrane[at], share[at]
    depth: Plane = np.minimum(deep[at], _MAX_DEPTH_PX).astype(np.float32)
    missed = missed_at(strays, at, depth)
    alpha, colour, strong = _inked(block, at, marked, smooth, part, missed, whole[at], depth)
    opacity = alpha * part
    through = np.maximum(1 - opacity, 1 - _MAX_ALPHA)
    computed = (marked - opacity[:, None] * colour) / through[:, None]
    # Two estimates with errors of their own: the better one counts more, and both together are better than either.
    impossible = _mean(np.maximum(np.maximum(-computed, computed - 255), 0))
    computed = np.clip(computed, 0, 255)
    lever = np.sqrt(_mean((colour - computed) ** 2))
    unsure = np.hypot(_ALPHA_ERROR, alpha * (0.01 + 0.1 * change[at]))
    wrong = np.hypot(GRAIN_LEVELS, unsure * lever) / through + 2 * impossible
    # Of what is nearly opaque little shines through, and its alpha is less certain.
    wrong = (wrong + strong * block.doubt[at]) * (1 + 4 * strong)
    invented = wrong**2 / (wrong**2 + (2 * missed) ** 2)
    unknown = block.doubt[at] >= UNKNOWN_ERROR_LEVELS
    invented = np.where((opacity > _MAX_ALPHA) | unknown, 1, invented)

    def spread(values: NDArray[np.floating], around: Plane | float) -> Plane:
        plane = np.full(block.loose.shape, around, np.float32) if isinstance(around, float) else around.copy()
        plane[at] = values
        return plane

    blend = computed * (1 - invented)[:, None] + smooth * invented[:, None]
    return Draft(
        marked=block.picture,
        filled=membrane,
        computed=spread(computed, block.picture),
        blend=spread(blend, block.picture),
        colour=spread(colour, block.picture),
        opacity=spread(opacity, 0.0),
        invented=spread(invented, 0.0),
        rough=rough,
        missed=spread(missed, 0.0),
        doubt=spread(np.where(unknown, np.float32(_DEFAULT_ERROR_LEVELS), block.doubt[at]), 0.0),
        likely=spread(block.likely[at], 0.0),
        loose=block.loose,
    )


def _inked(
    block: Block, at: At, marked: Plane, smooth: Plane, part: Plane, missed: Plane, whole: Plane, deep: Plane
) -> tuple[Plane, Plane, Plane]:
    """Of each pixel: alpha of a whole stroke there, colour, and how near to opaque that is, 0 to 1."""
    colour = np.clip(block.tint[at] / np.maximum(block.alpha[at], 0.02)[:, None], 0, 255)
    points = Points(marked, smooth, missed, part, whole, colour)
    inks, which = read(points, (part > 0.5) & (deep <= _RIM_PX) & block.tight[at])
    alphas, strongest = np.array([ink.alpha for ink in inks]), np.array([ink.strongest for ink in inks])
    colours = np.array([ink.colour for ink in inks], np.float32)
    strong = np.clip((strongest - 0.55) / 0.2, 0, 1)
    return alphas.astype(np.float32)[which], colours[which], strong.astype(np.float32)[which]


def _mean(colours: Plane) -> Plane:
    """Of each pixel (n 3)."""
    mean: Plane = (colours[:, 0] + colours[:, 1] + colours[:, 2]) * np.float32(1 / 3)
    return mean


def strays_of(picture: Plane, loose: Mask) -> list[Plane]:
    """How far the picture around each pixel strays from its own blur, for each width of that."""
    grey = grey_of(picture)
    outside = (~loose).astype(np.float32)
    # Deep in a mark nothing of the picture is near: what is further away speaks for it.
    seen = sum(
        (counts * cv2.blur(outside, (side, side)) for side, counts in _SQUARE_SIDES_AND_WEIGHTS),
        np.full_like(grey, 1e-7),
    )
    each: list[Plane] = []
    for width in _BLUR_WIDTHS_PX:
        blurred = cv2.blur(grey * outside, (width, width)) / (cv2.blur(outside, (width, width)) + np.float32(1e-3))
        strays = outside * (grey - blurred) ** 2
        # And where nothing is within reach at all, the whole of the block.
        usual = np.float32(1e-7 * strays.sum() / max(float(outside.sum()), 1.0))
        total = sum(
            (counts * cv2.blur(strays, (side, side)) for side, counts in _SQUARE_SIDES_AND_WEIGHTS),
            np.full_like(grey, usual),
        )
        each.append(np.sqrt(total / seen + 1))
    return each


def missed_at(strays: list[Plane], at: At, depth: Plane) -> Plane:
    """How far off filling in is to be expected, so deep in the mark."""
    near, further, far = (plane[at] for plane in strays)
    doublings = np.log2(np.maximum(depth, 1)) - 2
    found = near + (further - near) * np.clip(doublings, 0, 1) + (far - further) * np.clip(doublings - 1, 0, 1)
    missed: Plane = (np.float32(_MISSED_RATIO) * found + np.float32(_MIN_MISSED_LEVELS)).astype(np.float32)
    return missed

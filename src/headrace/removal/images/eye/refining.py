"""The last touch: a small network weighs what was computed and what was filled in at every pixel, and corrects it.

It was taught with drafts of this very solver (training/hand.py), so that it knows how they go wrong: ghosts of edges,
holes that are wider than the mark, strokes whose strength was misread.
"""

import math
from dataclasses import dataclass

import numpy as np

from headrace.removal.images.eye import weights
from headrace.removal.images.eye.model import Mask, Plane

_PLANES_COUNT = 21  # four pictures, five planes, the ink's colour, roughness: as training/hand.py stacks them
# A run takes some hundred bytes a pixel: this many rows at a time, plus the refiner's field of view around them.
_BAND_ROWS, _CONTEXT_ROWS = 704, 96
# How much of the refiner's correction counts where all is computed.
_COMPUTED_WEIGHT_RATIO = 0.5
# How many levels it may correct where all is computed, beside what the picture's roughness allows.
_MAX_CORRECTION_LEVELS = 120


@dataclass(frozen=True, slots=True)
class Draft:
    """What the solver knows: pictures (H W 3, in levels) and planes (H W); beside the mark all pictures are alike."""

    marked: Plane
    filled: Plane
    computed: Plane
    blend: Plane
    colour: Plane  # the ink's
    opacity: Plane
    invented: Plane  # how much of the blend is filled in
    rough: Plane  # how much the picture around varies, in levels
    missed: Plane  # how far off what is filled in may be, in levels
    doubt: Plane  # in levels
    likely: Plane  # 0 to 255
    loose: Mask


def refine(draft: Draft, *, frugal: bool = False) -> tuple[Plane, Plane]:
    """The finished picture, in levels; and how likely no mark covers a pixel, 0 to 1. Right under the mark only."""
    height = draft.loose.shape[0]
    count = math.ceil(height / _BAND_ROWS)
    size = math.ceil(height / count / weights.REFINER.stride) * weights.REFINER.stride
    said = np.concatenate([_told(draft, top, min(height, top + size), frugal=frugal) for top in range(0, height, size)])
    colours, bare = said[..., :3] * np.float32(255), said[..., 3]
    # Where the solver is sure of itself the refiner is right only in part.
    heard = np.minimum(1, _COMPUTED_WEIGHT_RATIO + 3 * draft.invented)
    # On smooth ground what was filled in is right, and the refiner would leave a ghost in the sky.
    most = ((draft.rough - 1) ** 2 + _MAX_CORRECTION_LEVELS * (1 - draft.invented))[..., None]
    finished: Plane = draft.blend + np.clip(heard[..., None] * (colours - draft.blend), -most, most)
    return finished, bare


def _told(draft: Draft, top: int, bottom: int, *, frugal: bool) -> Plane:
    """What the refiner says of some rows (H W 4, 0 to 1): the picture, and whether it is bare."""
    above = max(0, top - _CONTEXT_ROWS)
    rows = slice(above, bottom + _CONTEXT_ROWS)
    height, width = draft.loose[rows].shape
    stride = weights.REFINER.stride
    given = np.empty((_PLANES_COUNT, height + -height % stride, width + -width % stride), np.float32)
    inner = given[:, :height, :width]
    for i, picture in enumerate((draft.computed, draft.filled, draft.marked, draft.blend)):
        np.multiply(picture[rows].transpose(2, 0, 1), np.float32(1 / 255), out=inner[3 * i : 3 * i + 3])
    inner[12], inner[13] = draft.opacity[rows], draft.invented[rows]
    np.multiply(draft.doubt[rows], np.float32(1 / 255), out=inner[14])
    np.multiply(draft.likely[rows], np.float32(1 / 255), out=inner[15])
    inner[16] = draft.loose[rows]
    np.multiply(draft.colour[rows].transpose(2, 0, 1), np.float32(1 / 255), out=inner[17:20])
    np.multiply(np.sqrt(draft.rough[rows]), np.float32(1 / 8), out=inner[20])
    given[:, height:] = given[:, height - 1 : height]
    given[:, :, width:] = given[:, :, width - 1 : width]
    said = weights.run(weights.REFINER, given, frugal=frugal)[:, top - above : bottom - above, :width]
    colours: Plane = said.transpose(1, 2, 0)
    return colours

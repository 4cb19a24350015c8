"""What a mark lies on: letters on a board of their own, which is part of the scene, or over the picture itself."""

from typing import NamedTuple

import cv2
import numpy as np

from headrace.removal.images.eye.model import Levels, Mask, Picture

# A pixel this likely a mark (in 255ths), with this margin in pixels, is no ground
_MAX_GROUND_LEVELS = 40
_MARK_MARGIN_PX = 5
# Pixels beside a box; and around it, as a share of its shorter side
_BOX_MARGIN_PX = 2
_SURROUNDINGS_RATIO = 0.7
_MIN_SURROUNDINGS_PX = 16
_MAX_SAMPLE_PIXELS = 90_000  # pixels that are looked at, about
_MIN_GROUND_PIXELS = 12  # pixels of ground that say something


class Ground(NamedTuple):
    """Differences of mean colours, 0 to 1."""

    board: float  # between the ground inside the box and around it: a board has a colour of its own
    contrast: float  # between what is on the ground and the ground


_UNKNOWN = Ground(0.1, 0.2)  # where there is too little of it: what is usual


def occupied(likely: Levels) -> Mask:
    """What is no ground."""
    near = cv2.dilate(
        (likely >= _MAX_GROUND_LEVELS).view(np.uint8), np.ones((_MARK_MARGIN_PX, _MARK_MARGIN_PX), np.uint8)
    )
    return near.view(np.bool_)


def beneath(picture: Picture, occupied: Mask, box: tuple[int, int, int, int]) -> Ground:
    """The ground of what lies in a box: left, top, right, bottom."""
    left, top, right, bottom = box
    far = max(_MIN_SURROUNDINGS_PX, int(_SURROUNDINGS_RATIO * min(right - left, bottom - top)))
    height, width = occupied.shape
    rows, columns = (
        np.arange(max(0, start - far), min(length, end + far))
        for start, end, length in ((top, bottom, height), (left, right, width))
    )
    step = max(1, int((len(rows) * len(columns) / _MAX_SAMPLE_PIXELS) ** 0.5))
    rows, columns = rows[::step], columns[::step]
    part = picture[rows[0] : rows[-1] + 1 : step, columns[0] : columns[-1] + 1 : step].astype(np.float32) / 255
    taken = occupied[rows[0] : rows[-1] + 1 : step, columns[0] : columns[-1] + 1 : step]
    inside = np.outer(
        (rows >= top - _BOX_MARGIN_PX) & (rows < bottom + _BOX_MARGIN_PX),
        (columns >= left - _BOX_MARGIN_PX) & (columns < right + _BOX_MARGIN_PX),
    )
    ground, around, ink = inside & ~taken, ~inside & ~taken, inside & taken
    if ground.sum() < _MIN_GROUND_PIXELS:
        return _UNKNOWN
    colour = part[ground].mean(0)
    board = (
        float(np.abs(colour - part[around].mean(0)).mean()) if around.sum() >= _MIN_GROUND_PIXELS else _UNKNOWN.board
    )
    contrast = float(np.abs(colour - part[ink].mean(0)).mean()) if ink.any() else _UNKNOWN.contrast
    return Ground(board, contrast)

"""Openings in a mark: what shows through the letters that are cut out of a logo was never covered."""

import cv2
import numpy as np

from headrace.removal.images.eye.model import Mask, Plane, grey_of
from headrace.removal.images.eye.refining import Draft

_INK_DISTANCE_PX = 9  # the ink's strength is read off this near
# The refiner's word counts from this probability on, beside ink at least this strong and where the ground is at least
# this rough: on smoother ground filling in is right, and soft edges that are taken for bare would be spread over it.
_MIN_COVERED_RATIO, _MIN_BARE_ALPHA, _MIN_ROUGH_LEVELS = 0.9, 0.3, 2.0
_MIN_OPENING_PIXELS = 9  # fewer pixels are no opening
# A window looks like what was filled in (within once what filling may miss) and unlike that with the ink over it
# (by three times as much); means over squares of this side are compared.
_MAX_ALIKE_RATIO, _MIN_UNLIKE_RATIO, _SQUARE_PX = 1.0, 3.0, 3
_MIN_WINDOW_PX, _MIN_WINDOW_PIXELS = 5, 25  # narrower or smaller windows are the mark's own edges


def may_be_bare(draft: Draft, tight: Mask) -> Mask:
    """Which of the mark's pixels the refiner is asked about: whether no ink covers them."""
    ink, picture = (grey_of((draft.marked - other) ** 2) for other in (draft.colour, draft.filled))
    # A few pixels of ink that were taken for picture would glow over all that is filled in.
    return _large(
        tight & (_strength(draft) >= _MIN_COVERED_RATIO) & (draft.rough >= _MIN_ROUGH_LEVELS) & (picture < ink),
        _MIN_OPENING_PIXELS,
    )


def bare(asked: Mask, likely: Plane) -> Mask:
    """Which of the pixels asked about are bare, by the refiner's word (0 to 1)."""
    return _large(asked & (likely > _MIN_BARE_ALPHA), _MIN_OPENING_PIXELS)


def windows(draft: Draft, tight: Mask) -> Mask:
    """Which of the mark's pixels look as if the picture itself showed through."""
    marked, expected = (cv2.blur(picture, (_SQUARE_PX, _SQUARE_PX)) for picture in (draft.marked, draft.filled))
    inked = expected + _strength(draft)[..., None] * (draft.colour - expected)
    like, unlike = (grey_of((marked - other) ** 2) for other in (expected, inked))
    shown = tight & (like < (_MAX_ALIKE_RATIO * draft.missed) ** 2) & (unlike > (_MIN_UNLIKE_RATIO * draft.missed) ** 2)
    wide = cv2.morphologyEx(shown.view(np.uint8), cv2.MORPH_OPEN, np.ones((_MIN_WINDOW_PX, _MIN_WINDOW_PX), np.uint8))
    return _large(wide.view(np.bool_), _MIN_WINDOW_PIXELS)


def _strength(draft: Draft) -> Plane:
    """How strong the strongest ink nearby is, 0 to 1."""
    return cv2.dilate(draft.opacity, np.ones((_INK_DISTANCE_PX, _INK_DISTANCE_PX), np.uint8))  # type: ignore[return-value]


def _large(mask: Mask, fewest: int) -> Mask:
    """The mask without parts of fewer pixels."""
    _, labels, boxes, _ = cv2.connectedComponentsWithStats(mask.view(np.uint8), connectivity=4, ltype=cv2.CV_32S)
    large = boxes[:, cv2.CC_STAT_AREA] >= fewest
    large[0] = False  # the ground
    found: Mask = large[labels]
    return found

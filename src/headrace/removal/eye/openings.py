"""Openings in a mark: what shows through the letters that are cut out of a logo was never covered."""

import cv2
import numpy as np

from headrace.removal.eye.finishing import Draft
from headrace.removal.eye.model import Mask

# An opening looks like what was filled in (within once what filling may miss) and unlike that with the ink over it
# (by three times as much); means over squares of this side are compared.
_LIKE, _UNLIKE, _SQUARE = 1.0, 3.0, 3
_INK_NEAR = 9  # the ink's strength is read off this near
_WIDTH, _FEWEST = 5, 25  # narrower or smaller openings are the mark's own edges


def openings(draft: Draft, tight: Mask) -> Mask:
    """Which of the mark's pixels the picture itself shows through."""
    marked, expected = (cv2.blur(picture, (_SQUARE, _SQUARE)) for picture in (draft.marked, draft.filled))
    strength = cv2.dilate(draft.opacity, np.ones((_INK_NEAR, _INK_NEAR), np.uint8))[..., None]
    inked = expected + strength * (draft.colour - expected)
    like, unlike = (((marked - other) ** 2).mean(2) for other in (expected, inked))
    bare = tight & (like < (_LIKE * draft.missed) ** 2) & (unlike > (_UNLIKE * draft.missed) ** 2)
    wide = cv2.morphologyEx(bare.view(np.uint8), cv2.MORPH_OPEN, np.ones((_WIDTH, _WIDTH), np.uint8))
    _, labels, boxes, _ = cv2.connectedComponentsWithStats(wide, connectivity=4, ltype=cv2.CV_32S)
    large = boxes[:, cv2.CC_STAT_AREA] >= _FEWEST
    large[0] = False  # the ground
    found: Mask = large[labels]
    return found

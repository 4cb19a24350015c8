"""A mark's mask without what the network took in beside it.

In a box that the user drew every pixel counts as likelier, so that nothing is overlooked: the gaps between letters come
in, too. With them the ground is taken from too far away, and an ink's strength is read wrongly.
"""

from dataclasses import replace

import cv2
import numpy as np

from headrace.removal.images.eye.model import Detection, Mask, Plane, loosened

# The probability in a user's box, in 255ths, from which on a pixel stays; less where the network sees ink nearly as
# strong as the strongest nearby.
_MIN_LIKELY_LEVELS, _MIN_INKED_LEVELS = 190, 100
_MIN_STRENGTH_RATIO, _MIN_STRENGTH_LEVELS = 0.3, 6
_STROKES_PX = 25
_MIN_KEPT_RATIO = 0.1  # of the mask: what loses more is no trimmed mark


def trimmed(mark: Detection) -> Detection:
    """The mark in a user's box without the pixels that are unlikely and without ink.

    Copies of a mark agree on theirs, and without a box no pixel is likelier than it looks: these marks stay.
    """
    if not mark.confirmed or mark.repeated or mark.step > 1 or mark.finer is not None or not mark.tight.any():
        return mark
    kept: Mask = mark.tight & (
        (mark.likely >= _MIN_LIKELY_LEVELS) | _is_inked(mark) & (mark.likely >= _MIN_INKED_LEVELS)
    )
    if kept.sum() < _MIN_KEPT_RATIO * mark.tight.sum():
        return mark
    return replace(mark, tight=kept, loose=mark.loose & loosened(kept))


def _is_inked(mark: Detection) -> Mask:
    strength: Plane = cv2.blur((mark.strength * mark.tight).astype(np.float32), (3, 3)).astype(np.float32)
    strongest = cv2.dilate(strength, np.ones((_STROKES_PX, _STROKES_PX), np.uint8))
    usual = cv2.blur(strongest, (_STROKES_PX, _STROKES_PX))
    found: Mask = (strength >= _MIN_STRENGTH_RATIO * usual) & (strength >= _MIN_STRENGTH_LEVELS)
    return found

"""What lies under a mark whose matte is known: computed where it shines through, filled in where it does not."""

import cv2
import numpy as np

from headrace.removal.images.eye.drafting import GRAIN_LEVELS, strays_of
from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import Mask, Picture, Plane
from headrace.removal.images.eye.refining import Draft, refine
from headrace.removal.images.views.solving import Matte

_MAX_ALPHA = 0.93
_ALPHA_ERROR = 0.012  # how far alpha is off, after all views
_MISSED_RATIO, _MIN_MISSED_LEVELS = 0.83, 1.77  # what filling in misses: as eye.drafting has it


def drafted(picture: Picture, matte: Matte) -> Draft:
    """The two estimates, and how they are weighed by what is known of their errors."""
    marked = picture.astype(np.float32)
    loose = matte.loose
    rough = strays_of(marked, loose)[1]
    filled = fill(marked, loose & (matte.alpha > 0.05))
    through = np.maximum(1 - matte.alpha, 1 - _MAX_ALPHA)
    computed = np.where(loose[..., None], np.clip((marked - matte.tint) / through[..., None], 0, 255), marked)
    colour = np.where(loose[..., None], np.clip(matte.tint / np.maximum(matte.alpha, 0.02)[..., None], 0, 255), marked)
    lever = np.sqrt(((colour - computed) ** 2).mean(2))
    edge = cv2.morphologyEx(matte.alpha, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))
    wrong = np.hypot(GRAIN_LEVELS, (_ALPHA_ERROR + 0.05 * edge) * lever) / through
    missed = (_MISSED_RATIO * rough + _MIN_MISSED_LEVELS).astype(np.float32)
    invented = np.where(matte.alpha > _MAX_ALPHA, 1, wrong**2 / (wrong**2 + (2 * missed) ** 2)) * loose
    weight = invented[..., None]
    return Draft(
        marked=marked,
        filled=filled,
        computed=computed.astype(np.float32),
        blend=(computed * (1 - weight) + filled * weight).astype(np.float32),
        colour=colour.astype(np.float32),
        opacity=matte.alpha,
        invented=invented.astype(np.float32),
        rough=rough,
        missed=missed * loose,
        doubt=np.where(loose, np.float32(4), np.float32(0)).astype(np.float32),
        likely=np.where(loose, np.float32(255), np.float32(0)).astype(np.float32),
        loose=loose,
    )


def taken_off(picture: Picture, matte: Matte) -> tuple[Plane, Mask]:
    """The picture without the mark, in levels, right in the loose mask alone; and what of it was invented."""
    draft = drafted(picture, matte)
    return refine(draft)[0], draft.invented > 0.5

"""Pictures for somebody to look at: before, mask and after beside each other; and masks that somebody drew."""

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Picture = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_LONGEST, _GAP = 1200, 8  # of each of the three, in pixels
_MIDDLE_GREY = 128


@dataclass(frozen=True, slots=True)
class Triptych:
    """The first two of the three pictures of a comparison, small; taken before the picture is worked on in place."""

    before: Picture | None = None
    mask: Picture | None = None

    @classmethod
    def of(cls, picture: Picture, mask: Mask) -> "Triptych":
        return cls(_small(picture), _small(np.repeat(mask.astype(np.uint8)[..., None] * np.uint8(255), 3, 2)))

    def save(self, target: str, after: Picture) -> None:
        """Writes all three to a PNG file."""
        assert self.before is not None
        assert self.mask is not None
        gap = np.full((self.before.shape[0], _GAP, 3), _MIDDLE_GREY, np.uint8)
        Image.fromarray(np.hstack([self.before, gap, self.mask, gap, _small(after)])).save(target, "PNG")


def read_mask(path: str) -> Mask:
    """Where a picture is lighter than middle grey."""
    with Image.open(path) as opened:
        grey: NDArray[Any] = np.asarray(opened.convert("L"))
    return grey >= _MIDDLE_GREY


def blended(before: Picture, after: Picture, strength: float) -> Picture:
    """So much of the change: over 1 takes off more where a mark still shines through, under 1 less."""
    change = after.astype(np.float32) - before
    return np.clip(np.rint(before + np.float32(strength) * change), 0, 255).astype(np.uint8)


def _small(picture: Picture) -> Picture:
    scale = _LONGEST / max(picture.shape[:2])
    if scale >= 1:
        return picture.copy()
    return cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)  # type: ignore[return-value]

"""Pictures for somebody to look at: before, mask and after beside each other; and masks that somebody drew."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]

_LONGEST, _GAP = 1200, 8  # of each of the three, in pixels


def small(picture: Picture) -> Picture:
    """A copy to look at."""
    scale = _LONGEST / max(picture.shape[:2])
    if scale >= 1:
        return picture.copy()
    return cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)  # type: ignore[return-value]


def as_picture(mask: NDArray[np.bool_]) -> Picture:
    """White where the mark is."""
    return np.repeat((mask.astype(np.uint8) * np.uint8(255))[..., None], 3, 2)


def read_mask(path: str) -> NDArray[np.bool_]:
    """Where a picture is lighter than middle grey."""
    from PIL import Image

    with Image.open(Path(path)) as opened:
        grey: NDArray[Any] = np.asarray(opened.convert("L"))
    return grey >= 128


def blended(before: Picture, after: Picture, strength: float) -> Picture:
    """So much of the change: over 1 takes off more where a mark still shines through, under 1 less."""
    change = after.astype(np.float32) - before
    return np.clip(np.rint(before + np.float32(strength) * change), 0, 255).astype(np.uint8)


def save(target: str, before: Picture, mask: Picture, after: Picture) -> None:
    from PIL import Image

    gap = np.full((before.shape[0], _GAP, 3), 128, np.uint8)
    Image.fromarray(np.hstack([before, gap, mask, gap, after])).save(target, "PNG")

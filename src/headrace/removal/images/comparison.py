"""Comparisons for people: before, mask and after side by side; and user-drawn masks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Picture = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_MAX_SIDE_PX, _GAP_PX = 1200, 8  # of each of the three, in pixels
UNPAID_SIDE_PX = 320  # longest side of a picture that is shown before it is paid for
_MIDDLE_GREY_LEVELS = 128
_STAMP, _STAMP_STEP_PX, _STAMP_DARK_LEVELS, _STAMP_LIGHT_LEVELS = "PREVIEW  ", 26, 40, 230
_MIN_CROP_MARGIN_PX = 48  # pixels of the surroundings that a crop shows, at least


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
        gap = np.full((self.before.shape[0], _GAP_PX, 3), _MIDDLE_GREY_LEVELS, np.uint8)
        Image.fromarray(np.hstack([self.before, gap, self.mask, gap, _small(after)])).save(target, "PNG")


def read_mask(path: str) -> Mask:
    """Where a picture is lighter than middle grey."""
    with Image.open(path) as opened:
        grey: NDArray[Any] = np.asarray(opened.convert("L"))
    return grey >= _MIDDLE_GREY_LEVELS


def blended(before: Picture, after: Picture, strength: float) -> Picture:
    """So much of the change: over 1 takes off more where a mark still shines through, under 1 less."""
    change = after.astype(np.float32) - before
    return np.clip(np.rint(before + np.float32(strength) * change), 0, 255).astype(np.uint8)


def _small(picture: Picture, longest: int = _MAX_SIDE_PX) -> Picture:
    scale = longest / max(picture.shape[:2])
    if scale >= 1:
        return picture.copy()
    height, width = (max(1, round(each * scale)) for each in picture.shape[:2])
    return cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)  # type: ignore[return-value]


def save_unpaid(target: str, pairs: Sequence[tuple[Picture, Picture]]) -> None:
    """Write the whole of each picture before and after, small and stamped, to a JPEG file.

    Never a crop: the result could be pasted together from crops at full resolution without paying for it. Pictures
    that were cut into small pieces before they were uploaded are shown at half their size, and stamped.
    """
    rows = []
    for before, after in pairs:
        longest = max(1, min(UNPAID_SIDE_PX, max(before.shape[:2]) // 2))
        rows.append(np.hstack([_small(before, longest), stamped(_small(after, longest))]))
    Image.fromarray(np.vstack(rows)).save(target, "JPEG", quality=85)


def stamped(picture: Picture) -> Picture:
    """The picture with a word across all of it: lines of opaque letters, dark and light, no gap larger than a line."""
    height, width = picture.shape[:2]
    ink = np.zeros((2, height + width, height + width), np.uint8)
    for row, baseline in enumerate(range(_STAMP_STEP_PX, height + width, _STAMP_STEP_PX)):
        start = (-row * 37) % 90 - 90
        text = _STAMP * (1 + (height + width) // 60)
        for layer, thickness in ((0, 3), (1, 1)):
            cv2.putText(ink[layer], text, (start, baseline), cv2.FONT_HERSHEY_SIMPLEX, 0.5, 255, thickness, cv2.LINE_AA)
    top, left = width // 2, height // 2
    turn = cv2.getRotationMatrix2D(((height + width) / 2, (height + width) / 2), 30, 1.0)
    turned = [cv2.warpAffine(each, turn, (height + width, height + width)) for each in ink]
    dark, light = (each[top : top + height, left : left + width, None].astype(np.float32) / 255 for each in turned)
    shaded = picture * (1 - dark) + _STAMP_DARK_LEVELS * dark
    return np.rint(shaded * (1 - light) + _STAMP_LIGHT_LEVELS * light).astype(np.uint8)


def save_crops(target: str, before: Picture, after: Picture, changed: Mask, *, longest: int = _MAX_SIDE_PX) -> None:
    """Write the part around what changed, before on the left half and after on the right, to a JPEG file."""
    rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
    height, width = changed.shape
    top, bottom, left, right = 0, height, 0, width
    if len(rows):
        margin = max(
            _MIN_CROP_MARGIN_PX, (int(rows[-1]) - int(rows[0])) // 4, (int(columns[-1]) - int(columns[0])) // 4
        )
        top, bottom = max(0, int(rows[0]) - margin), min(height, int(rows[-1]) + margin + 1)
        left, right = max(0, int(columns[0]) - margin), min(width, int(columns[-1]) + margin + 1)
    sides = [_small(np.ascontiguousarray(each[top:bottom, left:right]), longest) for each in (before, after)]
    Image.fromarray(np.hstack(sides)).save(target, "JPEG", quality=92, subsampling=0)

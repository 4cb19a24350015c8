"""What the eye sees, and what solving gives."""

from dataclasses import dataclass
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]  # H W 3, red first
Mask = NDArray[np.bool_]
Plane = NDArray[np.float32]
T = TypeVar("T", bound=np.generic)

JOIN = 9  # strokes this near, in pixels, belong together


def loosened(tight: Mask) -> Mask:
    """The mask with the margin of two pixels that files smear a mark into."""
    return cv2.dilate(tight.view(np.uint8), np.ones((5, 5), np.uint8)).view(np.bool_)


@dataclass(frozen=True, slots=True)
class Region:
    """One connected mark, or a group of strokes that lie close together."""

    left: int
    top: int
    width: int
    height: int
    score: float
    pixels: int


@dataclass(frozen=True, slots=True)
class Sight:
    """Where a mark is and what it is made of: picture = (1 - alpha) clean + alpha colour.

    ``score`` is the calibrated probability that the picture carries a mark. The planes have the picture's size; in
    pictures of very many pixels they are kept at half or a quarter of it (``step``) and enlarged when read.
    """

    height: int
    width: int
    step: int
    tight: Mask
    loose: Mask
    likely: NDArray[np.uint8]  # the probability, 0 to 255
    strength: NDArray[np.uint8]  # alpha, 0 to 255
    tint: Picture  # colour times alpha
    doubt: NDArray[np.uint8]  # the error to be expected of an inverted pixel, in levels
    score: float
    regions: tuple[Region, ...]

    @property
    def mask_tight(self) -> Mask:
        """The mark's pixels, as exactly as they are seen."""
        return self._enlarged(self.tight)

    @property
    def mask_loose(self) -> Mask:
        """The same with a margin: nothing outside it is ever changed."""
        return self._enlarged(self.loose)

    @property
    def alpha(self) -> Plane:
        return self._enlarged(self.strength).astype(np.float32) / np.float32(255)

    @property
    def colour(self) -> Picture:
        """The mark's own colour, where it has one."""
        alpha = np.maximum(self.alpha, 1e-3)[..., None]
        return np.clip(np.rint(self._enlarged(self.tint) / alpha), 0, 255).astype(np.uint8)

    def _enlarged(self, plane: NDArray[T]) -> NDArray[T]:
        if self.step == 1:
            return plane
        return plane.repeat(self.step, 0).repeat(self.step, 1)[: self.height, : self.width]


@dataclass(frozen=True, slots=True)
class Restoration:
    """The picture without its mark, or, where ``refused`` says why, the picture as it was."""

    picture: Picture
    confidence: float
    inverted: int  # pixels computed
    filled: int  # pixels invented
    refused: str | None = None

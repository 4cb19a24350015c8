"""What the eye sees, and what solving gives."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.thresholds import MIN_CLEAN_CONFIDENCE

Picture = NDArray[np.uint8]  # H W 3, red first
Mask = NDArray[np.bool_]
Plane = NDArray[np.float32]
Levels = NDArray[np.uint8]  # H W or PLANES H W, in 255ths
T = TypeVar("T", bound=np.generic)
Level = TypeVar("Level", np.uint8, np.float32)

MAX_FULL_SIZE_PIXELS = 25_000_000  # of a picture whose planes have its size
MIN_FRUGAL_PIXELS = 12_500_000  # larger pictures leave no memory for what is only faster, or better by a little
MAX_JOINED_GAP_PX = 9  # strokes this near, in pixels, belong together
MIN_SCORE = 0.5  # what is less likely a mark is left alone
# Of the picture: what a single mark hardly covers, and what hardly any spans
_MAX_SINGLE_MARK_RATIO = 0.18
_MIN_WIDESPREAD_RATIO = 0.7
_GREY = np.full((1, 3), 1 / 3, np.float32)
UNKNOWN_ERROR_LEVELS = 255  # the expected error, in levels, of what must not be computed


def shrunk(picture: NDArray[Level], step: int) -> NDArray[Level]:
    """Means over squares of ``step`` pixels; those at the right and at the bottom may be cut off."""
    height, width = picture.shape[:2]
    small = np.empty((-(-height // step), -(-width // step), 3), picture.dtype)
    deep = 256  # rows at a time: a picture may fill half the memory
    for top in range(0, len(small), deep):
        part = picture[top * step : (top + deep) * step]
        squares = cv2.copyMakeBorder(part, 0, -len(part) % step, 0, -width % step, cv2.BORDER_REPLICATE)
        small[top : top + deep] = cv2.resize(squares, None, fx=1 / step, fy=1 / step, interpolation=cv2.INTER_AREA)
    return small


def grey_of(picture: Plane) -> Plane:
    """The mean of the three colours; NumPy's over a last axis that short takes seventy times as long."""
    return cv2.transform(picture, _GREY)  # type: ignore[return-value]


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

    def shrunk(self, step: int) -> "Region":
        """The same on a copy ``step`` times smaller."""
        left, top = self.left // step, self.top // step
        right, bottom = -(-(self.left + self.width) // step), -(-(self.top + self.height) // step)
        return Region(left, top, right - left, bottom - top, self.score, max(1, self.pixels // step**2))


@dataclass(frozen=True, slots=True)
class Detection:
    """Where a mark is and what it is made of: picture = (1 - alpha) clean + alpha colour.

    ``score`` is the calibrated probability that the picture carries a mark. The planes have the picture's size; of
    pictures of very many pixels, and of marks with wide strokes, they are of a copy ``step`` times smaller, and
    enlarged when read. ``finer`` are marks that only a larger copy shows.
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
    finer: "Detection | None" = None
    # How likely what a pixel belongs to is a mark, 0 to 255; None is certainly.
    certainty: NDArray[np.uint8] | None = None
    allowed: Mask | None = None  # where alone anything may change; None is everywhere
    repeated: bool = False  # whether copies of the mark lie on a lattice
    confirmed: bool = False  # whether the user confirmed that this is the mark

    @property
    def covered(self) -> float:
        """The share of the picture that may be changed."""
        return float(self.loose.mean()) + (self.finer.covered if self.finer else 0.0)

    @property
    def widespread(self) -> bool:
        """Whether one thing covers much of the picture without repeating: a map, a fence, a page rather than a mark."""
        pixels = self.height * self.width
        return not self.repeated and any(
            region.pixels > _MAX_SINGLE_MARK_RATIO * pixels
            or region.width * region.height > _MIN_WIDESPREAD_RATIO * pixels
            for region in self.regions
            if region.score >= MIN_SCORE
        )

    @property
    def as_seen(self) -> "Detection":
        """The same masks and planes, shared, as those of the smaller copy that was looked at."""
        height, width = self.tight.shape
        others = self.finer.regions if self.finer else ()
        regions = tuple(region.shrunk(self.step) for region in self.regions if region not in others)
        return replace(self, height=height, width=width, step=1, regions=regions, finer=None)

    def at_least(self, score: float) -> "Detection":
        """A copy, with masks of its own, without the regions that are less likely a mark."""
        tight, loose = self.tight.copy(), self.loose.copy()
        if self.certainty is not None and any(region.score < score for region in self.regions):
            tight &= self.certainty >= 255 * score
            loose &= loosened(tight)
        regions = tuple(region for region in self.regions if region.score >= score)
        finer = self.finer and self.finer.at_least(score)
        return replace(self, tight=tight, loose=loose, regions=regions, finer=finer)

    def only(self, numbers: Collection[int]) -> "Detection":
        """The same without the regions that are not named; the first is number 1."""
        kept = [self.regions[n - 1] for n in numbers if 0 < n <= len(self.regions)]
        if len(kept) != len(numbers):
            raise ValueError(f"there are {len(self.regions)} regions, numbered from 1")
        mine = np.zeros(self.tight.shape, np.bool_)
        for region in kept:
            rows = slice(region.top // self.step, -(-(region.top + region.height) // self.step))
            columns = slice(region.left // self.step, -(-(region.left + region.width) // self.step))
            # Boxes may overlap; what a group has in common is how sure it is.
            certainty = np.uint8(255) if self.certainty is None else self.certainty[rows, columns]
            mine[rows, columns] |= np.abs(certainty - np.float32(255 * region.score)) <= 1
        tight = self.tight & mine
        finer = self.finer and self.finer.only(
            [self.finer.regions.index(r) + 1 for r in kept if r in self.finer.regions]
        )
        score = max((region.score for region in kept), default=0.0)
        loose = self.loose & loosened(tight)
        detection = self.besides(self.loose & ~loose)
        chosen = replace(detection, tight=tight, loose=loose, regions=tuple(kept), score=score, finer=finer)
        return replace(chosen, confirmed=True)

    def besides(self, barred: Mask) -> "Detection":
        """A copy, with masks of its own, for which nothing may change there."""
        allowed = ~barred if self.allowed is None else self.allowed & ~barred
        return replace(self, tight=self.tight.copy(), loose=self.loose.copy(), allowed=allowed)

    @property
    def mask_tight(self) -> Mask:
        """The mark's pixels, as exactly as they are seen."""
        tight = self._enlarged(self.tight)
        return tight | self.finer.mask_tight if self.finer else tight

    @property
    def mask_loose(self) -> Mask:
        """The same with a margin, the only pixels that change but for small gaps and what a second look finds."""
        loose = self._enlarged(self.loose)
        return loose | self.finer.mask_loose if self.finer else loose

    @property
    def alpha(self) -> Plane:
        alpha = self._own_alpha
        return np.maximum(alpha, self.finer.alpha) if self.finer else alpha

    @property
    def colour(self) -> Picture:
        """The mark's own colour, where it has one."""
        alpha = np.maximum(self._own_alpha, 1e-3)[..., None]
        colour: Picture = np.clip(np.rint(self._enlarged(self.tint) / alpha), 0, 255).astype(np.uint8)
        return np.where(self.finer.mask_loose[..., None], self.finer.colour, colour) if self.finer else colour

    @property
    def _own_alpha(self) -> Plane:
        return self._enlarged(self.strength).astype(np.float32) / np.float32(255)

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
    needs_review: bool = False  # refused only because the user should confirm the mark
    gone: float = 1.0  # the share of the mark that was worked on at all
    variant: Picture | None = None  # what another way of filling in gave, where it was asked for

    @property
    def needs_look(self) -> bool:
        """Whether the result should be looked at before it is used."""
        return self.refused is None and self.confidence < MIN_CLEAN_CONFIDENCE

"""A mark that is repeated over the picture: where its copies lie, and what all of them say together.

A copy on a busy ground is hardly visible by itself, but detected where the others let it expect; and what
many copies show of an edge is sharper than what each of them does.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.model import Levels

Numbers = NDArray[np.floating]

# Copies are searched at a size of at most this many pixels.
_MAX_SEARCH_PIXELS = 150_000
_MAX_SIDE_PX = 32_000  # pixels to a side: cv2.remap, which reads what all copies say, counts in 16 bits
# There, they are further apart than this, and a peak of the picture's likeness to itself is at least so high.
_MIN_DISTANCE_PX, _MIN_PEAK_SCORE = 8, 0.3
# The highest peaks that are examined; how many of them the steps from copy to copy must explain, and how exactly.
_MAX_PEAKS, _MIN_EXPLAINED_PEAKS, _MAX_STEP_ERROR_RATIO = 16, 5, 0.35
_MIN_COPY_PIXELS = 600  # pixels of a copy with what is around it, at that size
# The share of the certain pixels of single copies that all copies together must find at least doubtful.
_MIN_CONFIRMED_RATIO, _MIN_CERTAIN_LEVELS, _MIN_DOUBTFUL_LEVELS = 0.7, 200, 64
_MIN_CONFIRMED_PART_RATIO = 0.35  # and in each part of the picture
_STRIP_PIXELS = 1_000_000  # pixels folded at a time
# Bins to a pixel's side: what many copies show is finer than pixels. In very large cells at most this many in all.
_BINS_PER_PIXEL_COUNT, _MAX_BINS = 2.0, 1_000_000

# The logarithm of the odds, by the probability in 255ths.
ODDS = np.log((np.arange(256) + 0.5) / (255.5 - np.arange(256))).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Lattice:
    """The two steps, x and y in pixels, that lead from each copy to its neighbours."""

    one: Numbers
    other: Numbers


def find(likely: Levels) -> Lattice | None:
    """How the mark is repeated, if it is, by its probability at every pixel."""
    height, width = likely.shape
    scale = min(0.5, (_MAX_SEARCH_PIXELS / (height * width)) ** 0.5)
    if min(height, width) * scale < 4 * _MIN_DISTANCE_PX or max(height, width) > _MAX_SIDE_PX:
        return None
    small = cv2.resize(likely, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA).astype(np.float32)
    small -= small.mean()
    if not small.any():
        return None
    alike = _Likeness(small)
    steps = _steps(alike)
    if steps is None:
        return None
    real = np.array([width / small.shape[1], height / small.shape[0]])
    return Lattice(steps[0] * real, steps[1] * real)


class _Likeness:
    """How much a plane is like itself when it is shifted, 1 at most; for shifts up to three quarters of its sides."""

    def __init__(self, plane: NDArray[np.float32]) -> None:
        height, width = plane.shape
        padded = np.zeros((cv2.getOptimalDFTSize(2 * height), cv2.getOptimalDFTSize(2 * width)), np.float32)
        padded[:height, :width] = plane
        spectrum = cv2.dft(padded)
        power = cv2.mulSpectrums(spectrum, spectrum, 0, conjB=True)
        shifted = cv2.dft(power, flags=cv2.DFT_INVERSE | cv2.DFT_SCALE | cv2.DFT_REAL_OUTPUT)
        down, self.across = 3 * height // 4, 3 * width // 4
        both = np.concatenate([shifted[:down, -self.across :], shifted[:down, : self.across + 1]], 1)
        overlap = np.outer(1 - np.arange(down) / height, 1 - np.abs(np.arange(-self.across, self.across + 1)) / width)
        self.values = (both / (float((plane**2).sum()) * overlap)).astype(np.float32)

    def peaks(self) -> tuple[Numbers, Numbers]:
        """Shifts that are liked better than all around them, the best first, and how much."""
        values = self.values
        rows, columns = np.nonzero(
            (values >= cv2.dilate(values, np.ones((9, 9), np.uint8))) & (values >= _MIN_PEAK_SCORE)
        )
        shifts = np.stack([columns - self.across, rows], 1).astype(np.float64)
        far = np.hypot(*shifts.T) >= _MIN_DISTANCE_PX
        shifts, height = shifts[far], values[rows, columns][far]
        first = np.argsort(-height, kind="stable")[:_MAX_PEAKS]
        return shifts[first], height[first]

    def peak(self, shift: Numbers, reach: int) -> tuple[Numbers, float] | None:
        """The best shift near this one, to a fraction of a pixel, and how much it is liked; None outside."""
        sign = -1 if shift[1] < 0 else 1
        column, row = (int(v) for v in np.rint(sign * shift))
        column += self.across
        top, left = max(0, row - reach), column - reach
        part = self.values[top : row + reach + 1, max(0, left) : column + reach + 1]
        if left < 1 or column + reach + 1 >= self.values.shape[1] or row + reach + 1 >= self.values.shape[0]:
            return None
        y, x = (int(v) for v in np.unravel_index(part.argmax(), part.shape))
        y, x = y + top, x + left
        along = self.values[y, x - 1 : x + 2]
        # Above the first row lies what is below it, turned by half.
        above = self.values[y - 1, x] if y else self.values[1, 2 * self.across - x]
        down = (above, self.values[y, x], self.values[y + 1, x])
        found = np.array([x - self.across + _summit(*along), y + _summit(*down)])
        return sign * found, float(self.values[y, x])


def _summit(before: float, here: float, after: float) -> float:
    """Where the parabola through three values is highest."""
    bend = before - 2 * here + after
    return float(np.clip((before - after) / (2 * bend), -1, 1)) if bend < 0 else 0.0


def _steps(alike: _Likeness) -> tuple[Numbers, Numbers] | None:
    shifts, heights = alike.peaks()
    best, steps = 0.0, None
    for i in range(len(shifts)):
        for j in range(i):
            one, other = _shortest(shifts[i], shifts[j])
            long = np.hypot(*one) * np.hypot(*other)
            area = abs(one[0] * other[1] - one[1] * other[0])
            if np.hypot(*one) < _MIN_DISTANCE_PX or area < max(_MIN_COPY_PIXELS, 0.35 * long):
                continue
            counts = shifts @ np.linalg.inv(np.stack([one, other]))
            away = np.abs(counts - np.rint(counts)) @ np.array([np.hypot(*one), np.hypot(*other)])
            fits = away <= 4
            near = [alike.peak(shift, 2) for shift in (one, other, one + other, one - other)]
            seen = [p[1] for p in near if p]
            if fits.sum() < _MIN_EXPLAINED_PEAKS or len(seen) < 2:
                continue
            # A finer lattice explains as much, but has points where nothing is.
            worth = float(heights[fits].sum()) * min(1.0, max(0.0, min(seen)) / _MIN_PEAK_SCORE)
            if worth > best + 1e-6:
                best, steps = worth, (one, other)
    return None if steps is None else _settled(alike, *steps)


def _shortest(one: Numbers, other: Numbers) -> tuple[Numbers, Numbers]:
    """The shortest steps that lead to the same points (Gauss)."""
    for _ in range(20):
        if one @ one > other @ other:
            one, other = other, one
        count = round(float(one @ other / (one @ one))) if one.any() else 0
        if count == 0:
            break
        other = other - count * one
    return one, other


def _settled(alike: _Likeness, one: Numbers, other: Numbers) -> tuple[Numbers, Numbers] | None:
    """The steps that fit near and far peaks best; None if they do not fit."""
    off = np.inf
    counts: list[tuple[int, int]] = []
    for reach in (1, 2, 3, 5, 8):
        counts, places, weights = [], [], []
        for a in range(reach + 1):
            for b in range(-reach, reach + 1):
                peak = alike.peak(a * one + b * other, 3) if (a, b) > (0, 0) else None
                if peak and peak[1] > _MIN_PEAK_SCORE / 2:
                    counts.append((a, b))
                    places.append(peak[0])
                    weights.append(peak[1])
        if len(counts) < 2 or np.linalg.matrix_rank(np.array(counts)) < 2:
            return None
        by, weight = np.array(counts, np.float64), np.array(weights)[:, None]
        fitted = np.linalg.lstsq(by * weight, np.array(places) * weight, rcond=None)[0]
        off = float(np.median(np.abs(by @ fitted - np.array(places)).max(1)))
        one, other = fitted
        if abs(one[0] * other[1] - one[1] * other[0]) < _MIN_COPY_PIXELS:  # peaks in one row, or all the same one
            return None
    return (one, other) if off <= _MAX_STEP_ERROR_RATIO and len(counts) >= _MIN_EXPLAINED_PEAKS else None


@dataclass(frozen=True, slots=True)
class Together:
    """What all copies say together: the probability at every pixel, by the fine look and by the coarse one."""

    likely: Levels
    coarse: Levels
    _means: NDArray[np.float32]  # of the other planes
    _cells: "_Cells"

    def into(self, planes: Levels, kept: NDArray[np.bool_]) -> None:
        """Writes it into the planes of the fine look, all but the pixels that are ``kept``."""
        for rows, where in self._cells.places():
            fresh = ~kept[rows]
            planes[0, rows][fresh] = self.likely[rows][fresh]
            for plane, mean in zip(planes[1:], self._means, strict=True):
                plane[rows][fresh] = np.rint(cv2.remap(mean, *where, cv2.INTER_LINEAR))[fresh]


def fold(planes: Levels, coarse: Levels, looked: NDArray[np.bool_], lattice: Lattice) -> Together | None:
    """What the copies' planes say together; None if single copies say otherwise.

    The probability is by the mean of its odds; what a copy says of alpha, colour and error counts as much as the copy
    is seen. Only what was ``looked`` at speaks; it is heard everywhere.
    """
    cells = _Cells(looked.shape, lattice)
    count, odds, seen, said = cells.empty(1), cells.empty(2), cells.empty(1), cells.empty(len(planes) - 1)
    for rows, places in cells.strips():
        spoken = looked[rows].ravel()
        at, chance = places[spoken], planes[0, rows].ravel()[spoken]
        cells.add(count[0], at, None)
        cells.add(odds[0], at, ODDS[chance])
        cells.add(odds[1], at, ODDS[coarse[rows].ravel()[spoken]])
        weight = chance / 255.0 + 1e-3
        cells.add(seen[0], at, weight)
        for plane, sums in zip(planes[1:], said, strict=True):
            cells.add(sums, at, weight * plane[rows].ravel()[spoken])
    chances = 255 / (1 + np.exp(-cells.mean(odds, count[0])))
    likely, rough = np.empty_like(coarse), np.empty_like(coarse)
    for rows, where in cells.places():
        for mean, plane in zip(chances, (likely, rough), strict=True):
            plane[rows] = np.rint(cv2.remap(mean, *where, cv2.INTER_LINEAR))
    if not _held(planes[0] >= _MIN_CERTAIN_LEVELS, likely >= _MIN_DOUBTFUL_LEVELS):
        return None
    return Together(likely, rough, cells.mean(said, seen[0]), cells)


def _held(certain: NDArray[np.bool_], together: NDArray[np.bool_]) -> bool:
    """Whether what is certain is found by all copies together, too: everywhere, since steps a little off add up."""
    few = certain.sum() / 64
    parts = [
        (ours, theirs)
        for rows in zip(np.array_split(certain, 4), np.array_split(together, 4), strict=True)
        for ours, theirs in zip(*(np.array_split(part, 4, axis=1) for part in rows), strict=True)
    ]
    here = [(ours & theirs).sum() / ours.sum() for ours, theirs in parts if ours.sum() > few]
    return bool(
        (certain & together).sum() >= _MIN_CONFIRMED_RATIO * certain.sum()
        and min(here, default=1.0) >= _MIN_CONFIRMED_PART_RATIO
    )


class _Cells:
    """One copy with what is around it, in bins finer than pixels, and the bin that each pixel falls into."""

    def __init__(self, shape: tuple[int, ...], lattice: Lattice) -> None:
        self.height, self.width = shape
        sides = [float(np.hypot(*step)) for step in (lattice.one, lattice.other)]
        fineness = min(_BINS_PER_PIXEL_COUNT, (_MAX_BINS / (sides[0] * sides[1])) ** 0.5)
        self.bins = tuple(math.ceil(fineness * side) for side in sides)
        self.inverse = np.linalg.inv(np.stack([lattice.one, lattice.other], 1))

    def empty(self, count: int) -> Numbers:
        return np.zeros((count, self.bins[0] * self.bins[1]))

    def add(self, sums: Numbers, at: NDArray[np.intp], values: Numbers | None) -> None:
        sums += np.bincount(at, values, minlength=len(sums))

    def mean(self, sums: Numbers, counts: Numbers) -> NDArray[np.float32]:
        """Sums over counts, bins that nothing fell into from those beside them; with a rim that is the other side's."""
        count = np.maximum(self._soft(counts), np.float32(1e-6))
        return np.stack([self._soft(one) / count for one in sums])

    def _soft(self, sums: Numbers) -> NDArray[np.float32]:
        wrapped = np.pad(sums.reshape(self.bins), 2, mode="wrap").astype(np.float32)
        kernel = np.array([0.25, 0.5, 0.25], np.float32)
        return cv2.sepFilter2D(wrapped, -1, kernel, kernel)  # type: ignore[return-value]

    def _at(self) -> Iterator[tuple[slice, Numbers, Numbers]]:
        deep = max(1, _STRIP_PIXELS // self.width)
        x = np.arange(self.width)[None]
        for top in range(0, self.height, deep):
            rows = slice(top, min(self.height, top + deep))
            y = np.arange(rows.start, rows.stop)[:, None]
            one, other = (a * x + b * y for a, b in self.inverse)
            yield rows, (one - np.floor(one)) * self.bins[0], (other - np.floor(other)) * self.bins[1]

    def strips(self) -> Iterator[tuple[slice, NDArray[np.intp]]]:
        for rows, one, other in self._at():
            first = np.minimum(one.astype(np.intp), self.bins[0] - 1)
            second = np.minimum(other.astype(np.intp), self.bins[1] - 1)
            yield rows, (first * self.bins[1] + second).ravel()

    def places(self) -> Iterator[tuple[slice, tuple[NDArray[np.float32], NDArray[np.float32]]]]:
        """Where to read the means with their rim."""
        for rows, one, other in self._at():
            yield rows, ((other + 1.5).astype(np.float32), (one + 1.5).astype(np.float32))

"""Hints about the mark, and detection that uses them."""

from dataclasses import dataclass

import cv2
import numpy as np

from headrace.removal.images.eye.inference import Box, Copy, Detector
from headrace.removal.images.eye.model import Levels, Mask, Picture
from headrace.removal.images.eye.repeats import ODDS

Rectangle = tuple[int, int, int, int]  # left, top, width, height
Polygon = tuple[tuple[int, int], ...]  # corners, across and down

# Where a box says that there is a mark: how much likelier each pixel is one, and each group (logarithms of odds).
PIXEL_ODDS, GROUP_ODDS = 1.2, 5.0
_LIKELIER = np.rint(255 / (1 + np.exp(-(ODDS + PIXEL_ODDS)))).astype(np.uint8)
_MIN_EVIDENCE_LEVELS = 8  # in 255ths: less is no evidence, and stays none


@dataclass(frozen=True, slots=True)
class Hints:
    """``boxes`` (left, top, width, height) and ``polygons`` hold all of the mark; or ``mask`` is the mark, pixel by
    pixel; ``keep`` are boxes in which nothing is changed."""

    boxes: tuple[Rectangle, ...] = ()
    keep: tuple[Rectangle, ...] = ()
    mask: Mask | None = None
    polygons: tuple[Polygon, ...] = ()

    @property
    def places(self) -> bool:
        """Whether they say where the mark is."""
        return bool(self.boxes or self.polygons)

    def __post_init__(self) -> None:
        for left, top, width, height in (*self.boxes, *self.keep):
            if left < 0 or top < 0 or width <= 0 or height <= 0:
                raise ValueError("a box is left, top, width, height, in pixels from the picture's upper left corner")


class HintedDetector(Detector):
    """Looks only where the hints allow it, and sees more easily where they say that there is a mark."""

    def __init__(self, threads: int, *, frugal: bool, hints: Hints, size: tuple[int, ...]) -> None:
        super().__init__(threads, frugal=frugal)
        self._hints, self._size = hints, size
        self.prior = GROUP_ODDS if hints.places else 0.0

    def fine(self, canvas: Picture, boxes: list[Box]) -> tuple[Levels, Mask]:
        allowed = self.allowed(canvas.shape[:2])
        planes, looked = super().fine(canvas, [box for box in boxes if allowed[box].any()])
        planes[0] *= allowed
        return planes, looked

    def halved(self, canvas: Picture) -> Copy | None:
        copy = super().halved(canvas)
        if copy:
            self.expect(copy.seen)
        return copy

    def expect(self, planes: Levels) -> None:
        if self._hints.places:
            planes[0] = np.where(planes[0] > _MIN_EVIDENCE_LEVELS, _LIKELIER[planes[0]], planes[0])

    def allowed(self, shape: tuple[int, ...]) -> Mask:
        """Where a mark may be, on a copy of this shape."""
        allowed = np.ones(shape, np.bool_)
        if self._hints.places:
            allowed = _drawn(self._hints.boxes, self._size, shape)
            _fill(allowed, self._hints.polygons, self._size)
        return allowed & ~_drawn(self._hints.keep, self._size, shape)


def _fill(plane: Mask, polygons: tuple[Polygon, ...], size: tuple[int, ...]) -> None:
    down, across = plane.shape[0] / size[0], plane.shape[1] / size[1]
    for corners in polygons:
        points = np.rint(np.array(corners, np.float64) * (across, down)).astype(np.int32)
        cv2.fillPoly(plane.view(np.uint8), [points], 1)


def _drawn(boxes: tuple[Rectangle, ...], size: tuple[int, ...], shape: tuple[int, ...]) -> Mask:
    plane = np.zeros(shape, np.bool_)
    down, across = shape[0] / size[0], shape[1] / size[1]
    for left, top, width, height in boxes:
        rows = slice(int(top * down), int(np.ceil((top + height) * down)))
        columns = slice(int(left * across), int(np.ceil((left + width) * across)))
        plane[rows, columns] = True
    return plane


def shrunk_mask(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """A mask for a smaller copy: what touches it is in it."""
    if mask.shape == shape:
        return mask.copy()
    small = cv2.resize(mask.astype(np.float32), shape[::-1], interpolation=cv2.INTER_AREA)
    touched: Mask = small > 0
    return touched

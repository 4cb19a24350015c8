"""Tiled inference: runs the network over pictures of any size, in overlapping tiles."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import cv2
import numpy as np

from headrace.removal.images.eye import weights
from headrace.removal.images.eye.model import Levels, Mask, Picture, shrunk

Box = tuple[slice, slice]

# A run of the network takes a few hundred bytes a pixel: larger pictures are cut into overlapping tiles.
_TILE_PX, _OVERLAP_PX = 736, 96
# Under this a coarse look would see nothing that the fine one does not.
_MIN_COARSE_PIXELS = 60_000


class Copy(NamedTuple):
    """A smaller copy of a picture, all of it looked at."""

    canvas: Picture
    seen: Levels  # PLANES H W, in 255ths


class Detector:
    """Runs the network over pictures of any size."""

    prior = 0.0  # how likely what is seen is a mark anyway, as the logarithm of odds

    def __init__(self, threads: int, *, frugal: bool, heed: Callable[[], object] = lambda: None) -> None:
        # The network itself works on two threads, always; more are spent on more tiles at a time.
        self._at_once = max(1, threads // 2)
        self._frugal = frugal
        self._heed = heed  # called before each run, which takes up to a second; may raise to end it

    def halved(self, canvas: Picture) -> Copy | None:
        """The canvas at half its size, looked at; None where it is small itself."""
        height, width = canvas.shape[:2]
        if height * width < _MIN_COARSE_PIXELS or min(height, width) < 2 * weights.DETECTOR.stride:
            return None
        half = shrunk(canvas, 2)
        return Copy(half, self.fine(half, cut_up(*half.shape[:2]))[0])

    def fine(self, canvas: Picture, boxes: list[Box]) -> tuple[Levels, Mask]:
        """All planes (PLANES H W, in 255ths) of the boxes, which may overlap, zero elsewhere; and what is in a box."""
        height, width = canvas.shape[:2]
        planes = np.zeros((weights.PLANES_COUNT, height, width), np.uint8)
        written = np.zeros((height, width), np.bool_)
        ramp = (np.arange(2 * _TILE_PX, dtype=np.float32) + 1) / (_OVERLAP_PX + 1)
        with ThreadPoolExecutor(self._at_once) as pool:
            for batch in _batched(boxes, self._at_once):
                self._heed()
                for box, tile in zip(batch, pool.map(lambda box: self._run(canvas[box]), batch), strict=True):
                    fade = np.minimum(1, ramp[: tile.shape[1], None]) * np.minimum(1, ramp[None, : tile.shape[2]])
                    weight = np.where(written[box], fade, np.float32(1))
                    part = planes[:, box[0], box[1]]
                    part[:] = np.rint(part * (1 - weight) + tile * weight)
                    written[box] = True
        return planes, written

    def expect(self, planes: Levels) -> None:
        """Enters into the planes of a fine look what is known of the mark: here nothing."""

    def _run(self, tile: Picture) -> Levels:
        height, width = tile.shape[:2]
        stride = weights.DETECTOR.stride
        padded = cv2.copyMakeBorder(tile, 0, -height % stride, 0, -width % stride, cv2.BORDER_REFLECT_101)
        given = np.multiply(padded.transpose(2, 0, 1), np.float32(1 / 255), dtype=np.float32)
        planes = weights.run(weights.DETECTOR, given, frugal=self._frugal)[:, :height, :width]
        levels: Levels = np.rint(planes * np.float32(255)).astype(np.uint8)
        return levels


def _batched(boxes: list[Box], count: int) -> Iterator[list[Box]]:
    return (boxes[i : i + count] for i in range(0, len(boxes), count))


def cut_up(height: int, width: int, top: int = 0, left: int = 0) -> list[Box]:
    return [(rows, columns) for rows in _cuts(top, height) for columns in _cuts(left, width)]


def _cuts(start: int, length: int) -> list[slice]:
    """A length cut into equal, overlapping parts of at most a tile's size."""
    count = max(1, math.ceil((length - _OVERLAP_PX) / (_TILE_PX - _OVERLAP_PX)))
    if count == 1:
        return [slice(start, start + length)]
    size = math.ceil((length + (count - 1) * _OVERLAP_PX) / count)
    return [
        slice(start + begin, start + min(length, begin + size))
        for begin in range(0, count * (size - _OVERLAP_PX), size - _OVERLAP_PX)
    ][:count]

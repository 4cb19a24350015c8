"""Many views of one place (K H W 3, of 8 bits or in levels), and what they say of each pixel together."""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import Mask, Plane

Views = Sequence[NDArray[np.uint8]]  # each H W 3, all of one size

_STRIP_ROWS = 64  # at a time: a median needs all views of them at once


@dataclass(frozen=True, slots=True)
class Moments:
    mean: Plane  # H W 3
    variance: Plane  # H W 3, over the views


def moments(views: Views) -> Moments:
    total = np.zeros(views[0].shape, np.float64)
    squares = np.zeros(views[0].shape, np.float64)
    for view in views:
        plain = view.astype(np.float32)
        total += plain
        squares += plain * plain
    mean = total / len(views)
    variance = np.maximum(squares / len(views) - mean**2, 0)
    return Moments(mean.astype(np.float32), variance.astype(np.float32))


def persistent_steps(views: Views) -> tuple[Plane, Plane]:
    """The median over the views of the step from each pixel to the next one, to the right and down (H W 3).

    What differs from view to view has steps of either sign, and their median is small; a mark's stay.
    """
    height = views[0].shape[0]
    right, down = np.zeros(views[0].shape, np.float32), np.zeros(views[0].shape, np.float32)
    for top in range(0, height, _STRIP_ROWS):
        bottom = min(height, top + _STRIP_ROWS + 1)
        rows = np.stack([view[top:bottom] for view in views]).astype(np.int16)
        end = min(height, top + _STRIP_ROWS)
        right[top:end, :-1] = _middle(np.diff(rows[:, : end - top], axis=2))
        below = np.diff(rows, axis=1)
        down[top : top + below.shape[1]] = _middle(below)
    return right, down


def _middle(values: NDArray[np.int16]) -> Plane:
    """A mean of the middle half: as robust as a median, and of finer steps."""
    count = len(values)
    if count < 4:
        few: Plane = np.median(values, axis=0).astype(np.float32)
        return few
    low, high = count // 4, count - count // 4
    ordered = np.partition(values, (low, high - 1), axis=0)
    middle: Plane = ordered[low:high].mean(0, dtype=np.float32)
    return middle


def integrated(right: Plane, down: Plane, inside: Mask) -> Plane:
    """The plane (H W 3) that has these steps inside the mask, and is zero outside."""
    divergence = right.copy()
    divergence[:, 1:] -= right[:, :-1]
    divergence += down
    divergence[1:] -= down[:-1]
    # Steps count where at least one of their two pixels is inside.
    near = cv2.dilate(inside.view(np.uint8), np.ones((3, 3), np.uint8))
    divergence *= near[..., None]
    some = np.stack([_poisson(divergence[..., channel]) for channel in range(divergence.shape[2])], 2)
    # Any plane with these steps will do; what it is off at the rim spans a membrane over the inside.
    return ((some - fill(some, inside)) * inside[..., None]).astype(np.float32)


def _poisson(divergence: Plane) -> Plane:
    """A plane with this Laplacian, by cosines; its sides are mirrors."""
    height, width = divergence.shape
    padded = cv2.copyMakeBorder(divergence, 0, height % 2, 0, width % 2, cv2.BORDER_CONSTANT, value=0.0)
    waves = cv2.dct(padded)
    rows, columns = (2 * np.cos(np.pi * np.arange(size) / size) - 2 for size in padded.shape)
    scale = rows[:, None] + columns[None]
    scale[0, 0] = 1
    waves = (waves / scale).astype(np.float32)
    waves[0, 0] = 0
    plane: Plane = cv2.dct(waves, flags=cv2.DCT_INVERSE)[:height, :width]
    return plane


def square(side: int) -> NDArray[np.uint8]:
    """The neighbourhood of a pixel, to grow and shrink masks by."""
    return np.ones((side, side), np.uint8)

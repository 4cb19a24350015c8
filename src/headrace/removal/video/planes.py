"""Frames as planes of numbers: brightness, and two of colour that may be of half the size."""

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.generic]

# What frames are worked on as they are; others are converted to the first, or to the second where they are deeper.
NATIVE = {
    "yuv420p": (1, 1, 8), "yuvj420p": (1, 1, 8), "yuv422p": (1, 0, 8), "yuvj422p": (1, 0, 8), "yuv444p": (0, 0, 8),
    "yuvj444p": (0, 0, 8), "yuv420p10le": (1, 1, 10), "yuv422p10le": (1, 0, 10), "yuv444p10le": (0, 0, 10),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layout:
    """How the planes of a format lie: halvings of the colours' width and height, and bits."""

    name: str
    across: int
    down: int
    bits: int
    full: bool  # whether levels go from 0 to 255, not from 16 to 235

    @property
    def shift(self) -> int:
        return self.bits - 8

    @property
    def white(self) -> tuple[float, float, float]:
        return (255.0 if self.full else 235.0, 128.0, 128.0)

    @property
    def black(self) -> tuple[float, float, float]:
        return (0.0 if self.full else 16.0, 128.0, 128.0)


def working_format(name: str, components_bits: int) -> str:
    """The format that frames of another one are converted to."""
    if name in NATIVE:
        return name
    return "yuv420p10le" if components_bits > 8 else "yuv420p"


def layout_of(name: str, *, full: bool) -> Layout:
    across, down, bits = NATIVE[name]
    return Layout(name, across, down, bits, full or name.startswith("yuvj"))


def views_of(frame: Any, layout: Layout) -> list[NDArray[Any]]:
    """The frame's own planes, to be read or written; it must be of the layout's format."""
    kind = np.uint8 if layout.bits == 8 else np.uint16
    found = []
    for plane in frame.planes:
        lines = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size).view(kind)
        found.append(lines[:, : plane.width])
    return found


def cropped(planes: list[NDArray[Any]], layout: Layout, box: tuple[int, int, int, int]) -> NDArray[np.uint8]:
    """A box (top, bottom, left, right, all even) with all three at full size, of 8 bits."""
    top, bottom, left, right = box
    bright = _to_8_bits(planes[0][top:bottom, left:right], layout)
    size = (right - left, bottom - top)
    colours = []
    for plane in planes[1:3]:
        part = plane[top >> layout.down : -(-bottom >> layout.down), left >> layout.across : -(-right >> layout.across)]
        colours.append(cv2.resize(_to_8_bits(part, layout), size, interpolation=cv2.INTER_LINEAR))
    return np.dstack([bright, *colours])


def parts_of(planes: list[NDArray[Any]], layout: Layout, box: tuple[int, int, int, int]) -> list[NDArray[Any]]:
    """The box (top, bottom, left, right) of each plane, as it is; colours as far as they reach into it."""
    top, bottom, left, right = box
    down, across = layout.down, layout.across
    colours = np.s_[top >> down : -(-bottom >> down), left >> across : -(-right >> across)]
    return [planes[0][top:bottom, left:right], *(plane[colours] for plane in planes[1:3])]


def _to_8_bits(plane: NDArray[Any], layout: Layout) -> NDArray[np.uint8]:
    if layout.bits == 8:
        return np.ascontiguousarray(plane)
    return (plane >> layout.shift).astype(np.uint8)


def shrunk_to(plane: NDArray[np.float32], layout: Layout) -> NDArray[np.float32]:
    """A full plane at the colours' size."""
    height, width = plane.shape[:2]
    size = (-(-width >> layout.across), -(-height >> layout.down))
    if size == (width, height):
        return plane
    return cv2.resize(plane, size, interpolation=cv2.INTER_AREA)  # type: ignore[return-value]

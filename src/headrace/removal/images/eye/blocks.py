"""Blocks: parts of a picture with what was seen in them, worked on one by one."""

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.model import Detection, Mask, Picture, Plane

Box = tuple[int, int, int, int]  # top, bottom, left, right
_OVERLAP_PX = 48  # pixels around a block that are only looked at


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the picture with what was seen in it."""

    picture: Plane  # in levels
    alpha: Plane
    tint: Plane  # colour times alpha, in levels
    doubt: Plane  # in levels
    likely: Plane  # 0 to 255
    tight: Mask
    loose: Mask
    step: int


def boxes(detection: Detection, side: int) -> Iterator[Box]:
    """What is marked of each block, by pixels of the picture."""
    step = detection.step
    side = max(1, side // step)
    for top in range(0, detection.loose.shape[0], side):
        for left in range(0, detection.loose.shape[1], side):
            part = detection.loose[top : top + side, left : left + side]
            rows, columns = np.flatnonzero(part.any(1)), np.flatnonzero(part.any(0))
            if len(rows):
                yield (
                    (top + int(rows[0])) * step,
                    min((top + int(rows[-1]) + 1) * step, detection.height),
                    (left + int(columns[0])) * step,
                    min((left + int(columns[-1]) + 1) * step, detection.width),
                )


def around(box: Box, detection: Detection) -> Box:
    """The box with its surroundings."""
    top, bottom, left, right = box
    margin = -(-_OVERLAP_PX // detection.step) * detection.step  # it begins where a coarse pixel does
    return (
        max(0, top - margin),
        min(detection.height, bottom + margin),
        max(0, left - margin),
        min(detection.width, right + margin),
    )


def inner(box: Box, outer: Box) -> tuple[slice, slice]:
    """A box's place in another one."""
    return slice(box[0] - outer[0], box[1] - outer[0]), slice(box[2] - outer[2], box[3] - outer[2])


def on_planes(step: int, box: Box) -> tuple[slice, slice]:
    """A box's place on planes that are ``step`` times coarser; it begins where a coarse pixel does."""
    top, bottom, left, right = box
    return slice(top // step, -(-bottom // step)), slice(left // step, -(-right // step))


def cut(picture: Picture, detection: Detection, box: Box) -> Block:
    top, bottom, left, right = box
    step, shape = detection.step, (bottom - top, right - left)
    rows, columns = on_planes(step, box)

    def plane(values: NDArray[np.uint8], smooth: int) -> NDArray[np.uint8]:
        part = values[rows, columns]
        if step == 1:
            return part
        large = cv2.resize(part, None, fx=step, fy=step, interpolation=smooth)
        return large[: shape[0], : shape[1]]  # type: ignore[return-value]

    tight, loose = (
        plane(m.view(np.uint8), cv2.INTER_NEAREST).astype(np.bool_) for m in (detection.tight, detection.loose)
    )
    return Block(
        picture[top:bottom, left:right].astype(np.float32),
        plane(detection.strength, cv2.INTER_LINEAR) * np.float32(1 / 255),
        plane(detection.tint, cv2.INTER_LINEAR).astype(np.float32),
        plane(detection.doubt, cv2.INTER_LINEAR).astype(np.float32),
        plane(detection.likely, cv2.INTER_LINEAR).astype(np.float32),
        tight,
        loose,
        step,
    )

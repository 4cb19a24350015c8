"""Reads the text of a mark: one line, in Chinese or Latin letters.

The network is the recognition of PP-OCRv4, an optional file that ``scripts/weights`` fetches: without it no mark has a
text. It reads a line that stands upright, not a slanted or repeated one.
"""

import functools

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye import weights
from headrace.removal.images.eye.model import Picture
from headrace.removal.report import Box

_LINE_PX = 48  # the height that the network was trained on
_MAX_WIDTH_PX = 1600
# Around the mark, of its height: letters must not touch the edge. A box that a person drew has room of its own.
_MARGINS_TO_HEIGHT_RATIO = (0.15, -0.1)
_MAX_LINE_ASPECT = 40.0
_MIN_LINE_ASPECT = 0.8
_CLIPPED_RATIO = 0.02  # of the darkest and of the brightest pixels


@functools.cache
def is_available() -> bool:
    """Whether the network's files are installed."""
    return weights.READER.file.is_file() and weights.CHARACTERS.file.is_file()


def is_line(box: Box) -> bool:
    """Whether a line of text fits the shape of this box."""
    return _MIN_LINE_ASPECT <= box.width / max(1, box.height) <= _MAX_LINE_ASPECT


def read_line(picture: Picture, box: Box) -> tuple[str, ...]:
    """What is read in this box, in several ways; empty where no line of text fits its shape."""
    if not is_line(box):
        return ()
    crops = [crop for ratio in _MARGINS_TO_HEIGHT_RATIO if (crop := _crop(picture, box, ratio)).size]
    return tuple(_recognize(each) for crop in crops for each in (crop, _stretched(crop)))


def _crop(picture: Picture, box: Box, margin_ratio: float) -> Picture:
    left, top, width, height = map(round, box)
    margin = round(height * margin_ratio)
    return np.ascontiguousarray(
        picture[max(0, top - margin) : top + height + margin, max(0, left - margin) : left + width + margin, :3]
    )


def _stretched(crop: Picture) -> Picture:
    """The crop in grey, with the full range of levels."""
    grey = cv2.cvtColor(crop, cv2.COLOR_RGB2GRAY)
    low, high = np.quantile(grey, (_CLIPPED_RATIO, 1 - _CLIPPED_RATIO))
    levels = np.clip((grey.astype(np.float32) - low) * (255 / max(1.0, float(high - low))), 0, 255).astype(np.uint8)
    return np.repeat(levels[:, :, None], 3, 2)


def _recognize(line: Picture) -> str:
    height, width = line.shape[:2]
    across = min(_MAX_WIDTH_PX, max(_LINE_PX, round(_LINE_PX * width / height)))
    method = cv2.INTER_AREA if height > _LINE_PX else cv2.INTER_CUBIC
    resized = cv2.resize(line, (across, _LINE_PX), interpolation=method)
    levels = resized[:, :, ::-1].transpose(2, 0, 1).astype(np.float32) / 127.5 - 1
    probabilities = weights.run(weights.READER, np.ascontiguousarray(levels))
    return _decode(probabilities.argmax(1))


def _decode(classes: NDArray[np.intp]) -> str:
    """The letters of each step (CTC): repetitions are one letter, and class 0 separates them."""
    characters = _characters()
    before = np.concatenate(([0], classes[:-1]))
    return "".join(characters[each - 1] for each in classes[(classes != before) & (classes > 0)].tolist())


@functools.cache
def _characters() -> tuple[str, ...]:
    return (*weights.read(weights.CHARACTERS).decode().splitlines(), " ")

"""Pictures for people: candidates in boxes, frames before and after."""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headrace.removal.report import Candidate
from headrace.removal.video import rotation
from headrace.removal.video.colours import rgb_of
from headrace.removal.video.probing import Facts
from headrace.removal.video.sampling import Sample

_MAX_SIDE_PX = 960
_CERTAIN_RGB, _DOUBTFUL_RGB = (230, 30, 30), (250, 170, 0)
MAX_COMPARED_FRAMES = 4


def overlay(facts: Facts, samples: list[Sample], candidates: Sequence[Candidate], target: str) -> None:
    """A frame that shows as many of the candidates as any, with a numbered box around each."""

    def shown_in(each: Sample) -> int:
        return sum(any(a <= each.seconds < b for a, b in candidate.seconds) for candidate in candidates)

    best = max(samples, key=shown_in)
    picture = upright(facts, best).copy()
    for each in candidates:
        left, top, width, height = map(int, each.box)
        colour = _CERTAIN_RGB if each.certain else _DOUBTFUL_RGB
        cv2.rectangle(picture, (left, top), (left + width, top + height), colour, 2)
        cv2.putText(picture, str(each.id), (left, max(16, top - 4)), cv2.FONT_HERSHEY_SIMPLEX, 0.6, colour, 2)
    Image.fromarray(picture).save(target, "PNG")


def compare(facts: Facts, samples: list[Sample], cleaned: Facts, after: list[Sample], target: str) -> None:
    """Frames of the source on the left, the same of the result on the right."""
    pairs = []
    for number in range(min(MAX_COMPARED_FRAMES, len(after))):
        other = after[round(number * (len(after) - 1) / max(1, MAX_COMPARED_FRAMES - 1))]
        one = min(samples, key=lambda each: abs(each.seconds - other.seconds))
        pairs.append(np.hstack([_small(upright(facts, one)), _small(upright(cleaned, other))]))
    Image.fromarray(np.vstack(pairs)).save(target, "PNG")


def upright(facts: Facts, each: Sample) -> NDArray[np.uint8]:
    """A frame as it is shown."""
    even = (0, facts.height - facts.height % 2, 0, facts.width - facts.width % 2)
    return rotation.shown(rgb_of(each.crop(facts.layout, even), full=facts.layout.full), facts)  # type: ignore[return-value]


def _small(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    scale = _MAX_SIDE_PX / max(picture.shape[:2])
    if scale >= 1:
        return picture
    return cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)  # type: ignore[return-value]

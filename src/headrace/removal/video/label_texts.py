"""Reads whether a clip's mark is a label of content that was made by AI."""

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from headrace.removal.ai_labels import is_ai_label
from headrace.removal.images import reading
from headrace.removal.report import Box, Candidate
from headrace.removal.video.previews import upright
from headrace.removal.video.probing import Facts
from headrace.removal.video.sampling import Sample

T = TypeVar("T")

_MAX_FRAMES = 12  # of a mark, over which their mean is taken
_MAX_READ_ALONE = 3  # frames that are also read by themselves: a mark that moves is blurred in the mean


def with_label_texts(facts: Facts, samples: list[Sample], candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """The candidates, with the text of those that are labels of AI content."""
    if not reading.is_available():
        return candidates
    return tuple(_with_text(facts, samples, each) for each in candidates)


def _with_text(facts: Facts, samples: list[Sample], candidate: Candidate) -> Candidate:
    if not reading.is_line(candidate.box):
        return candidate
    seen = [each for each in samples if any(first <= each.seconds <= last for first, last in candidate.seconds)]
    # A dozen frames of an 8K clip would take gigabytes: of each only what is read is kept.
    part, box = _surroundings(candidate.box)
    pictures = [upright(facts, each)[part].copy() for each in _spread(seen or samples, _MAX_FRAMES)]
    # What lies behind a mark changes from frame to frame, and the mark stands out in their mean.
    mean: NDArray[np.uint8] = np.mean(pictures, axis=0).astype(np.uint8)
    for picture in (mean, *_spread(pictures, _MAX_READ_ALONE)):
        for text in reading.read_line(picture, box):
            if is_ai_label(text):
                return replace(candidate, text=text)
    return candidate


def _surroundings(box: Box) -> tuple[tuple[slice, slice], Box]:
    """The part of a frame with the box and as much around it as it is high; and the box in this part."""
    left, top, width, height = map(round, box)
    first, begin = max(0, top - height), max(0, left - height)
    return np.s_[first : top + 2 * height, begin : left + width + height], Box(left - begin, top - first, width, height)


def _spread(items: list[T], most: int) -> list[T]:
    """At most this number of them, evenly spread."""
    return items if len(items) <= most else [items[round(at * (len(items) - 1) / (most - 1))] for at in range(most)]

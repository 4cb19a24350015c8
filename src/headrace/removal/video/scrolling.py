"""Whether text that scrolls through a clip is gone: a mark that was followed may be only a part of a longer line."""

from collections.abc import Callable

import numpy as np

from headrace.removal.images.eye.inference import Detector, cut_up
from headrace.removal.video.colours import rgb_of
from headrace.removal.video.marks_file import Mark
from headrace.removal.video.probing import Facts
from headrace.removal.video.sampling import Box, Sample

_MAX_DRIFT_RATIO = 1.5  # of its height or width: what strays more across its direction does not scroll
_MIN_TRAVEL_RATIO = 0.3  # of the frame, along that direction
_MAX_FRAMES = 5  # that are looked at
_MIN_LIKELY_LEVELS = 128  # of 255: pixels of a mark
_MIN_SEEN_PIXELS = 100  # of a mark in the original, in all frames together
_MAX_LEFT_RATIO = 0.3  # of these, in the result


def strip_of(mark: Mark, facts: Facts) -> Box | None:
    """The strip of the frame that a scrolling mark passes; None for a mark that does not scroll."""
    if not mark.path:
        return None
    top, bottom, left, right = mark.inner
    down, across = (np.array([place[axis] for place in mark.path]) for axis in (1, 2))
    height, width = bottom - top, right - left
    if np.ptp(across) >= _MIN_TRAVEL_RATIO * facts.width and np.ptp(down) <= _MAX_DRIFT_RATIO * height:
        first, last = top + int(down.min()) - height // 2, bottom + int(down.max()) + height // 2
        return max(0, first), min(facts.height, last), 0, facts.width
    if np.ptp(down) >= _MIN_TRAVEL_RATIO * facts.height and np.ptp(across) <= _MAX_DRIFT_RATIO * width:
        first, last = left + int(across.min()) - width // 2, right + int(across.max()) + width // 2
        return 0, facts.height, max(0, first), min(facts.width, last)
    return None


def is_left(
    mark: Mark,
    source: Facts,
    originals: list[Sample],
    result: Facts,
    samples: list[Sample],
    threads: int,
    heed: Callable[[], object],
) -> bool:
    """Whether the network sees much of what it sees in the original's strip in the result's, too."""
    strip = strip_of(mark, source)
    if strip is None or not samples:
        return False
    there = samples[:: -(-len(samples) // _MAX_FRAMES)]
    pairs = [(min(originals, key=lambda other: abs(other.seconds - each.seconds)), each) for each in there]
    before = sum(_seen(source, one, strip, threads, heed) for one, _ in pairs)
    after = sum(_seen(result, other, strip, threads, heed) for _, other in pairs)
    return before >= _MIN_SEEN_PIXELS and after > _MAX_LEFT_RATIO * before


def _seen(facts: Facts, sample: Sample, strip: Box, threads: int, heed: Callable[[], object]) -> int:
    heed()
    whole = (0, facts.height - facts.height % 2, 0, facts.width - facts.width % 2)
    picture = rgb_of(sample.crop(facts.layout, whole), full=facts.layout.full)
    top, bottom, left, right = strip
    planes, _ = Detector(threads, frugal=False).fine(picture, list(cut_up(bottom - top, right - left, top, left)))
    return int((planes[0][top:bottom, left:right] >= _MIN_LIKELY_LEVELS).sum())

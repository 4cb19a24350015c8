"""A mark that moves: its outline is looked for all over each frame, and a window that moves with it shows it at rest.

In that window the mark stands still while the picture moves beneath it, so all that is known of fixed marks holds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.video import templates
from headrace.removal.video.planes import Layout, cropped, layout_of
from headrace.removal.video.probing import Facts
from headrace.removal.video.sampling import Box, Sample

Mask = NDArray[np.bool_]
Path = tuple[tuple[float, int, int], ...]  # seconds, and the top and left of the window then
Heed = Callable[[], object]

_MAX_COARSE_PIXELS = 240_000  # pixels of a frame in which the outline is looked for at first
_MIN_LIKENESS_RATIO = 0.3  # likeness: with less the mark is not there
_MIN_SEED_LIKENESS_RATIO = 0.4  # likeness of what another look saw, from which on it may be the same mark
_MAX_ROUNDS, _MAX_TRIED_SEEDS = 2, 4
MIN_PLACES = 3  # places at which it was seen
_MIN_PLACE_DISTANCE_PX = 12  # pixels between two places
_OUTLINE_MARGIN_PX = 3  # pixels around a mark that its outline reaches to
_FIRST_SEARCH_PX = 40  # pixels around where it was in the frame before, in which it is looked for first
_STEP_MARGIN_PX = 6  # pixels around a part of a frame that its steps depend on
_MIN_SURE_LIKENESS_RATIO = 0.45  # likeness with which it is looked for no further
_MIN_EDGE_LEVELS = 0.4  # levels a pixel: flatter places are like everything
_FRAME_MARGIN_PX = 1  # pixels between a mark and the frame's sides, from which on all of it is in the frame
_MAX_OUTSIDE_RATIO = 0.25  # of its height and width: so much of a mark may lie beyond the frame's sides


@dataclass(frozen=True, slots=True)
class Outline:
    """What is looked for."""

    steps: templates.Steps  # H W 2, zero outside the zone
    zone: NDArray[np.float32]

    @classmethod
    def of(cls, steps: templates.Steps, mask: Mask) -> "Outline":
        size = 2 * _OUTLINE_MARGIN_PX + 1
        zone = cv2.dilate(mask.view(np.uint8), np.ones((size, size), np.uint8)).astype(np.float32)
        return cls(np.ascontiguousarray(steps * zone[..., None]), zone)

    def likeness(self, steps: templates.Steps) -> NDArray[np.float32]:
        """For each place of its top left corner: the similarity of the frame, 1 for equal."""
        cross = sum(
            cv2.matchTemplate(
                np.ascontiguousarray(steps[..., way]), np.ascontiguousarray(self.steps[..., way]), cv2.TM_CCORR
            )
            for way in (0, 1)
        )
        power = cv2.matchTemplate((steps**2).sum(2), self.zone, cv2.TM_CCORR)
        floor = _MIN_EDGE_LEVELS**2 * float(self.zone.sum())
        size = float(np.sqrt((self.steps**2).sum()))
        return (cross / (max(size, 1e-3) * np.sqrt(np.maximum(power, floor)))).astype(np.float32)

    def shrunk(self, step: int) -> "Outline":
        if step == 1:
            return self
        return Outline(_shrunk(self.steps, step), (_shrunk(self.zone, step) > 0).astype(np.float32))


def _shrunk(plane: NDArray[np.float32], step: int) -> NDArray[np.float32]:
    return cv2.resize(plane, None, fx=1 / step, fy=1 / step, interpolation=cv2.INTER_AREA)  # type: ignore[return-value]


def steps_of(bright: NDArray[np.generic], layout: Layout) -> templates.Steps:
    return templates.steps((bright >> layout.shift).astype(np.uint8))  # type: ignore[operator]


def coarseness(facts: Facts) -> int:
    return max(1, round(math.sqrt(facts.width * facts.height / _MAX_COARSE_PIXELS)))


def locate(outline: Outline, steps: templates.Steps, step: int) -> tuple[float, int, int]:
    """Where in a frame it is most likely: likeness, top, left. Looked for on a smaller copy first."""
    if step == 1:
        return nearby(outline, steps, 0, 0, max(steps.shape))
    likeness, top, left = locate(outline.shrunk(step), _shrunk(steps, step), 1)
    return nearby(outline, steps, top * step, left * step, 2 * step) if likeness > 0 else (0.0, 0, 0)


def nearby(outline: Outline, steps: templates.Steps, top: int, left: int, reach: int) -> tuple[float, int, int]:
    """The most likely place within this many pixels; it may reach beyond the frame's sides."""
    height, width = outline.zone.shape
    down, across = int(height * _MAX_OUTSIDE_RATIO), int(width * _MAX_OUTSIDE_RATIO)
    first, begin = max(-down, top - reach), max(-across, left - reach)
    last, end = min(steps.shape[0] + down, top + height + reach), min(steps.shape[1] + across, left + width + reach)
    if last - first < height or end - begin < width:
        return 0.0, top, left
    likeness, below, right = _best(outline.likeness(_part(steps, first, last, begin, end)))
    return likeness, first + below, begin + right


def _part(steps: templates.Steps, first: int, last: int, begin: int, end: int) -> templates.Steps:
    """Nothing changes beyond the frame's sides."""
    height, width = steps.shape[:2]
    above, below, before, after = max(0, -first), max(0, last - height), max(0, -begin), max(0, end - width)
    inside = steps[first + above : last - below, begin + before : end - after]
    if not (above or below or before or after):
        return inside
    return cv2.copyMakeBorder(inside, above, below, before, after, cv2.BORDER_CONSTANT)  # type: ignore[return-value]


def _best(likeness: NDArray[np.float32]) -> tuple[float, int, int]:
    _, most, _, (left, top) = cv2.minMaxLoc(likeness)
    return float(most), int(top), int(left)


@dataclass(slots=True)
class Track:
    """A mark that was found to move."""

    inner: Box  # where it was seen first
    seen: float  # the eye's score
    likeness: NDArray[np.float64]  # of each sample
    places: list[tuple[int, int]]  # of each sample: top and left of what was inner

    @property
    def there(self) -> NDArray[np.bool_]:
        return self.likeness > _MIN_LIKENESS_RATIO


@dataclass(frozen=True, slots=True)
class Seen:
    """What may be the mark, in one sample."""

    number: int  # of the sample
    box: Box
    mask: Mask  # of the box
    score: float


def track(seen: list[Seen], samples: list[Sample], facts: Facts, fewest: int, heed: Heed) -> Track | None:
    """The mark that was seen in different places, if it is one and the same. None where nothing moves."""
    step = coarseness(facts)
    best = _in_most_places(seen, samples, facts, fewest, step, heed)
    if best is None:
        return None
    first, outline = best
    height, width = outline.zone.shape
    places: list[tuple[int, int]] = []
    likeness = np.zeros(len(samples))
    for _ in range(_MAX_ROUNDS):  # learnt from one sample, then from all that have it
        total = np.zeros_like(outline.steps)
        places = []
        for number, sample in enumerate(samples):
            heed()
            steps = steps_of(sample.planes[0], facts.layout)
            likeness[number], top, left = locate(outline, steps, step)
            places.append((top, left))
            if likeness[number] > _MIN_LIKENESS_RATIO:
                total += _part(steps, top, top + height, left, left + width)
        if not total.any():
            return None
        outline = Outline(total * outline.zone[..., None], outline.zone)
    found = Track(first.box, first.score, likeness, places)
    those = [place for place, there in zip(places, found.there, strict=True) if there]
    return found if _different(those) >= fewest else None


def _in_most_places(
    seen: list[Seen], samples: list[Sample], facts: Facts, fewest: int, step: int, heed: Heed
) -> tuple[Seen, Outline] | None:
    """Of the surest, the one that most of the other samples have, too, and in other places."""
    tried = sorted(seen, key=lambda each: -each.score)[:_MAX_TRIED_SEEDS]
    outlines = [_outline(each, samples, facts) for each in tried]
    places = [[(each.box[0], each.box[2])] for each in tried]
    for number in sorted({each.number for each in seen}):
        steps = steps_of(samples[number].planes[0], facts.layout)  # of one frame at a time: they take 8 bytes a pixel
        for each, outline, others in zip(tried, outlines, places, strict=True):
            heed()
            if number != each.number:
                likeness, down, across = locate(outline, steps, step)
                others += [(down, across)] * (likeness > _MIN_SEED_LIKENESS_RATIO)
    apart = [which for which, each in enumerate(places) if _different(each) >= fewest]
    if not apart:
        return None
    best = max(apart, key=lambda which: len(places[which]))
    return tried[best], outlines[best]


def _outline(seen: Seen, samples: list[Sample], facts: Facts) -> Outline:
    top, bottom, left, right = seen.box
    return Outline.of(steps_of(samples[seen.number].planes[0], facts.layout)[top:bottom, left:right], seen.mask)


def _different(places: list[tuple[int, int]]) -> int:
    """Places that lie apart."""
    apart: list[tuple[int, int]] = []
    for top, left in places:
        if all(max(abs(top - down), abs(left - across)) > _MIN_PLACE_DISTANCE_PX for down, across in apart):
            apart.append((top, left))
    return len(apart)


def window_facts(facts: Facts, height: int, width: int) -> Facts:
    """Of the clip that a window shows: with colours at full size, because it lies on odd pixels, too."""
    full = facts.layout.full
    return replace(facts, width=width, height=height, layout=layout_of("yuv444p", full=full), rotation=0, matrix=None)


def windows(samples: list[Sample], facts: Facts, path: Path, height: int, width: int) -> list[Sample]:
    """What the window shows in the samples that are nearest to the moments of the path; the same number of them."""
    return [_window(_nearest(samples, seconds), facts, top, left, height, width) for seconds, top, left in path]


def _nearest(samples: list[Sample], seconds: float) -> Sample:
    return min(samples, key=lambda each: abs(each.seconds - seconds))


def _window(sample: Sample, facts: Facts, top: int, left: int, height: int, width: int) -> Sample:
    """Beyond the frame's sides its last pixels go on."""
    first, begin = max(0, top) // 2 * 2, max(0, left) // 2 * 2
    last = min(facts.height - facts.height % 2, (top + height + 1) // 2 * 2)
    end = min(facts.width - facts.width % 2, (left + width + 1) // 2 * 2)
    part = cropped(sample.planes, facts.layout, (first, last, begin, end))
    above, before = max(0, first - top), max(0, begin - left)
    part = part[max(0, top - first) :, max(0, left - begin) :]
    below, after = max(0, height - above - part.shape[0]), max(0, width - before - part.shape[1])
    whole = cv2.copyMakeBorder(part, above, below, before, after, cv2.BORDER_REPLICATE)[:height, :width]
    return Sample(sample.stamp, sample.seconds, [np.ascontiguousarray(whole[..., channel]) for channel in range(3)])


def uncut(path: Path, inner: Box, facts: Facts) -> Mask:
    """At which moments a mark lies clear of the frame's sides: at others some of it may be cut off."""
    top, bottom, left, right = inner
    return np.array(
        [
            min(top + down, left + across) >= _FRAME_MARGIN_PX
            and bottom + down <= facts.height - _FRAME_MARGIN_PX
            and right + across <= facts.width - _FRAME_MARGIN_PX
            for _, down, across in path
        ],
        np.bool_,
    )


class Follower:
    """Follows a mark from frame to frame."""

    def __init__(self, outline: Outline, facts: Facts) -> None:
        self._outline, self._facts = outline, facts
        self._step = coarseness(facts)
        self._at: tuple[int, int] | None = None

    def place(self, bright: NDArray[np.generic]) -> tuple[int, int] | None:
        """The top and left of the outline in a frame; where it is not found, where it was before."""
        likeness, top, left = 0.0, 0, 0
        if self._at is not None:
            likeness, top, left = self._near(bright, *self._at)
        if likeness < _MIN_SURE_LIKENESS_RATIO:
            steps = steps_of(bright, self._facts.layout)
            likeness, top, left = max((likeness, top, left), locate(self._outline, steps, self._step))
        if likeness > _MIN_LIKENESS_RATIO:
            self._at = (top, left)
        return self._at

    def _near(self, bright: NDArray[np.generic], top: int, left: int) -> tuple[float, int, int]:
        """Around where it was: all but that part of the frame is left alone."""
        height, width = self._outline.zone.shape
        first, begin = (
            max(0, top - _FIRST_SEARCH_PX - _STEP_MARGIN_PX),
            max(0, left - _FIRST_SEARCH_PX - _STEP_MARGIN_PX),
        )
        part = bright[
            first : top + height + _FIRST_SEARCH_PX + _STEP_MARGIN_PX,
            begin : left + width + _FIRST_SEARCH_PX + _STEP_MARGIN_PX,
        ]
        likeness, down, across = nearby(
            self._outline, steps_of(part, self._facts.layout), top - first, left - begin, _FIRST_SEARCH_PX
        )
        return likeness, down + first, across + begin

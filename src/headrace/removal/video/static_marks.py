"""Finding marks in a clip: the eye looks at a few frames, and all sampled frames say whether what it saw persists."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.judging import judge
from headrace.removal.images.eye.model import Picture
from headrace.removal.images.views import detection
from headrace.removal.thresholds import MIN_LISTED_CLIP_SCORE
from headrace.removal.video import moving_marks, templates
from headrace.removal.video.colours import rgb_of
from headrace.removal.video.model import Placed
from headrace.removal.video.planes import Layout
from headrace.removal.video.probing import Facts
from headrace.removal.video.sampling import Box, Sample

Heed = Callable[[], object]  # called about once a second; may raise to end the work

_MIN_SEED_SCORE = 0.25  # the score of a region from which on it is followed up
_MARGIN_PX = 24  # pixels around a mark that are worked with
MIN_SAME_RATIO = 0.5  # boxes that share so much of the smaller one are one mark
_MAX_SEEDS = 24
_MIN_PERSISTING_BACKGROUNDS = 3  # different backgrounds that only something over the picture stays the same on
_MANY_BACKGROUNDS_COUNT = 5  # more than two that say all there is to say
# Factors of a score for few views and for one; views that count as many
_FEW_VIEWS_RATIO = 0.6
_SINGLE_VIEW_RATIO = 0.25
_MANY_PICTURES_COUNT = 8
_STILL_CLIP_RATIO = 0.9  # of the eye's score, where the clip stands still
_MAX_AREA_RATIO = 0.35  # of the frame: more is no mark, unless it persists
# Copies of one height, from which on they are one mark all over the picture
_MIN_TILED_COPIES = 5
_MAX_HEIGHT_DIFFERENCE_RATIO = 0.3
_MAX_OUTLINE_PIXELS = 300_000  # pixels at most in which outlines are compared
MIN_RESTING_RATIO = 0.9  # of the samples: what is present this often does not move
_MIN_SIDE_PX = 16  # pixels of the longer side: what is smaller is no mark
_MAX_CLOSE_LOOK_FRAMES = 6  # frames that are looked at closely
# How far around what was seen, as a share of its longer side, and in pixels
_SURROUNDINGS_RATIO = 0.6
_MAX_SURROUNDINGS_PX = 240
_MAX_GAP_PX, _MAX_WORD_GAP_PX = 9, 41  # pixels between parts of one mark
_MAX_GAP_LOOKS = 6  # times without the outline, the longest, that the eye looks at
_MIN_SEEN_IN_GAP_RATIO = 0.5  # of the mark that is seen: from here on it counts as present


@dataclass(slots=True)
class Found:
    """What may be a mark, in pixels as stored."""

    box: Box  # with its surroundings
    seen: float  # the eye's score
    presence: templates.Presence
    which: NDArray[np.intp]  # background of each sample
    inner: Box = (0, 0, 0, 0)  # without its surroundings
    score: float = 0.0
    reasons: list[str] = field(default_factory=list)
    given: NDArray[np.bool_] | None = None  # the user-drawn part of the box
    looks: list[detection.Look] = field(default_factory=list)  # closer ones at the box, in frames that have the mark
    pictures: list[Picture] = field(default_factory=list)  # what was looked at
    path: moving_marks.Path = ()  # of a window that moves with it: boxes are the window's pixels, samples what it shows
    window: tuple[int, int] = (0, 0)  # height and width
    within: tuple[float, float] | None = None  # seconds: at other times nothing changes, as the user wants

    @property
    def moves(self) -> bool:
        return bool(self.path)

    @property
    def backgrounds(self) -> int:
        return len(np.unique(self.which[self.which >= 0]))


@dataclass(frozen=True, slots=True)
class Seed:
    box: Box
    inner: Box
    score: float
    mask: NDArray[np.bool_]  # of the box
    samples: tuple[int, ...]  # in which it was seen


def from_hints(
    facts: Facts, samples: list[Sample], boxes: list[tuple[Box, Placed]], mask: NDArray[np.bool_] | None, threads: int,
    heed: Heed, *, most: int = _MAX_CLOSE_LOOK_FRAMES,
) -> list[Found]:  # fmt: skip
    """Marks by the user's hints: present in every frame of their time."""
    found = []
    if mask is not None and mask.any():
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        inner = (int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1)
        found.append(_given(inner, Placed(), facts, samples, mask, threads, heed, most))
    return found + [_given(inner, placed, facts, samples, None, threads, heed, most) for inner, placed in boxes]


def _given(
    inner: Box, placed: Placed, facts: Facts, samples: list[Sample], mask: NDArray[np.bool_] | None, threads: int,
    heed: Heed, most: int,
) -> Found:  # fmt: skip
    box = _around(inner[2], inner[0], inner[3] - inner[2], inner[1] - inner[0], facts)
    ends = math.inf if placed.ends is None else placed.ends
    there = np.array([placed.begins <= each.seconds < ends for each in samples])
    if not there.any():  # between two samples: the nearest stands for it
        there[int(np.argmin([abs(each.seconds - placed.begins) for each in samples]))] = True
    inside = np.zeros((box[1] - box[0], box[3] - box[2]), np.bool_)
    inside[inner[0] - box[0] : inner[1] - box[0], inner[2] - box[2] : inner[3] - box[2]] = True
    if mask is not None:
        inside &= mask[box[0] : box[1], box[2] : box[3]]
    which = templates.backgrounds(*steps_in(samples, box, inside, facts), there)
    sure = np.ones(len(samples))
    found = Found(box, 1.0, templates.Presence(there, sure, sure), which, inner, 1.0, ["the user marked it"])
    found.given = inside if mask is not None else None
    found.within = None if placed.always else (placed.begins, ends)
    look_closer(found, samples, facts, threads, heed, most=most)
    if mask is None:
        # Not the box but what is seen in it says how many pictures lie beneath: what moves beside the mark does not.
        here = np.s_[found.box[0] - box[0] : found.box[1] - box[0], found.box[2] - box[2] : found.box[3] - box[2]]
        seen = detection.guess(found.looks, np.ascontiguousarray(inside[here])).tight
        if seen.any():
            found.which = templates.backgrounds(*steps_in(samples, found.box, seen, facts), there)
    return found


def allowed(found: Found, barred: list[Box]) -> NDArray[np.bool_]:
    """Where in its box a mark may be: inside drawn or detected parts, with a margin, and not in areas to keep."""
    top, bottom, left, right = found.box
    mask = np.ones((bottom - top, right - left), np.bool_)
    for first, last, begin, end in barred:
        mask[max(0, first - top) : max(0, last - top), max(0, begin - left) : max(0, end - left)] = False
    return mask


def steps_in(
    samples: list[Sample], box: Box, mask: NDArray[np.bool_], facts: Facts
) -> tuple[list[templates.Steps], NDArray[np.bool_]]:
    """How brightness changes in a box, and its mask: both smaller where all samples together would take much."""
    top, bottom, left, right = box
    step = math.ceil(math.sqrt(mask.size / _MAX_OUTLINE_PIXELS))
    size = (-(-(right - left) // step), -(-(bottom - top) // step))
    found = []
    for each in samples:
        bright = (each.planes[0][top:bottom, left:right] >> facts.layout.shift).astype(np.uint8)
        found.append(templates.steps(bright if step == 1 else cv2.resize(bright, size, interpolation=cv2.INTER_AREA)))  # type: ignore[arg-type]
    return found, cv2.resize(mask.view(np.uint8), size, interpolation=cv2.INTER_NEAREST).view(np.bool_)


def canvas_of(sample: Sample, layout: Layout, step: int) -> Picture:
    height, width = sample.planes[0].shape
    even = (0, height - height % 2, 0, width - width % 2)
    picture = rgb_of(sample.crop(layout, even), full=layout.full)
    if step == 1:
        return picture
    return cv2.resize(picture, None, fx=1 / step, fy=1 / step, interpolation=cv2.INTER_AREA)  # type: ignore[return-value]


def seeds_of(
    canvases: list[Picture], looks: list[detection.Look], numbers: list[int], step: int, facts: Facts
) -> list[Seed]:
    """What all looks see together, then what single ones do."""
    together = detection.likely(looks)
    mean = np.mean(canvases, 0).astype(np.uint8)
    seeds = _judged(mean, together, tuple(numbers), step, facts)
    for canvas, each, number in zip(canvases, looks, numbers, strict=True):
        seeds += _judged(canvas, each.seen[0], (number,), step, facts)
    seeds.sort(key=lambda seed: (-len(seed.samples), -seed.score))
    return [*_all_over(seeds, facts), *seeds[:_MAX_SEEDS]]


def _all_over(seeds: list[Seed], facts: Facts) -> list[Seed]:
    """Copies of one mark all over the picture are one: together they tell more, and one that was overlooked is seen."""
    copies = [seed for seed in seeds if len(seed.samples) > 1]
    if not copies:
        return []
    usual = float(np.median([seed.inner[1] - seed.inner[0] for seed in copies]))
    copies = [
        seed for seed in copies if abs(seed.inner[1] - seed.inner[0] - usual) <= _MAX_HEIGHT_DIFFERENCE_RATIO * usual
    ]
    if len(copies) < _MIN_TILED_COPIES:
        return []
    tops, bottoms, lefts, rights = zip(*(seed.inner for seed in copies), strict=True)
    inner = (min(tops), max(bottoms), min(lefts), max(rights))
    box = _around(inner[2], inner[0], inner[3] - inner[2], inner[1] - inner[0], facts)
    whole = np.zeros((facts.height, facts.width), np.bool_)
    for seed in copies:
        whole[seed.box[0] : seed.box[1], seed.box[2] : seed.box[3]] |= seed.mask
    score = float(np.median([seed.score for seed in copies]))
    return [Seed(box, inner, score, whole[box[0] : box[1], box[2] : box[3]], copies[0].samples)]


def _judged(
    picture: Picture, likely: NDArray[np.uint8], numbers: tuple[int, ...], step: int, facts: Facts
) -> list[Seed]:
    judged = judge(picture, likely, likely, least=_MIN_SEED_SCORE)
    tight = judged.tight.view(np.uint8)
    whole = cv2.resize(tight, (facts.width, facts.height), interpolation=cv2.INTER_NEAREST).view(np.bool_)
    seeds = []
    for region in judged.regions:
        if max(region.width, region.height) * step < _MIN_SIDE_PX:
            continue
        box = _around(region.left * step, region.top * step, region.width * step, region.height * step, facts)
        mask = whole[box[0] : box[1], box[2] : box[3]].copy()  # a view would keep all of the frame
        if len(numbers) > 1 or region.width * region.height * step**2 <= _MAX_AREA_RATIO * facts.width * facts.height:
            inner = (
                region.top * step,
                (region.top + region.height) * step,
                region.left * step,
                (region.left + region.width) * step,
            )
            seeds.append(Seed(box, inner, region.score, mask, numbers))
    return seeds


def _around(left: int, top: int, width: int, height: int, facts: Facts, margin: int = _MARGIN_PX) -> Box:
    """The box with its surroundings, on even pixels."""
    first_row, first_column = max(0, top - margin) // 2 * 2, max(0, left - margin) // 2 * 2
    last_row, last_column = min(facts.height, top + height + margin), min(facts.width, left + width + margin)
    return first_row, last_row - last_row % 2, first_column, last_column - last_column % 2


def overlap(one: Box, other: Box) -> float:
    down = min(one[1], other[1]) - max(one[0], other[0])
    across = min(one[3], other[3]) - max(one[2], other[2])
    if down <= 0 or across <= 0:
        return 0.0
    areas = ((box[1] - box[0]) * (box[3] - box[2]) for box in (one, other))
    return down * across / min(areas)


def follow(seed: Seed, samples: list[Sample], facts: Facts, threads: int, heed: Heed) -> Found | None:
    """Whether what was seen in some frames is in others, too; and all of it, by a closer look at those."""
    all_steps, mask = steps_in(samples, seed.box, seed.mask, facts)
    first = np.zeros(len(samples), np.bool_)
    first[list(seed.samples)] = True
    heed()
    presence = templates.present(all_steps, mask, first, heed)
    if not presence.there.any():
        return None
    heed()
    which = templates.backgrounds(all_steps, mask, presence.there)
    heed()
    found = Found(seed.box, seed.score, presence, which, seed.inner)
    _judge(found, all_steps, mask)
    wide = (seed.inner[1] - seed.inner[0]) * (
        seed.inner[3] - seed.inner[2]
    ) > _MAX_AREA_RATIO * facts.width * facts.height
    if wide and found.backgrounds < _MIN_PERSISTING_BACKGROUNDS:
        return None
    if found.score < MIN_LISTED_CLIP_SCORE or not look_closer(found, samples, facts, threads, heed):
        return None
    _fill_gaps(found, samples, facts, threads, heed)
    return found


def _fill_gaps(found: Found, samples: list[Sample], facts: Facts, threads: int, heed: Heed) -> None:
    """Completes the times of a mark by looks at those without its outline.

    The outline is one of brightness: over a ground that is as bright as the mark, or as restless, it does not show.
    """
    there = found.presence.there.copy()
    mark = detection.guess(found.looks).tight
    if there.all() or not mark.any():
        return
    gaps = sorted(_runs(~there), key=lambda run: run[0] - run[1])
    for first, last in gaps[:_MAX_GAP_LOOKS]:
        view = rgb_of(samples[(first + last) // 2].crop(facts.layout, found.box), full=facts.layout.full)
        seen = detection.look(view, threads=threads, heed=heed).odds > 0
        there[first:last] = float(seen[mark].mean()) > _MIN_SEEN_IN_GAP_RATIO
    if (there == found.presence.there).all():
        return
    all_steps, outline = steps_in(samples, found.box, mark, facts)
    found.presence = replace(found.presence, there=there)
    found.which = templates.backgrounds(all_steps, outline, there)


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The first of each run of true ones, and the one after its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2], strict=True)]


def look_closer(
    found: Found, samples: list[Sample], facts: Facts, threads: int, heed: Heed, *, most: int = _MAX_CLOSE_LOOK_FRAMES
) -> bool:
    """Looks at frames that have the mark, at full size and further around it. Says whether there is one."""
    top, bottom, left, right = found.inner
    reach = int(np.clip(max(bottom - top, right - left) * _SURROUNDINGS_RATIO, 2 * _MARGIN_PX, _MAX_SURROUNDINGS_PX))
    wide = _around(left, top, right - left, bottom - top, facts, reach)
    numbers = varied(found.which, most)
    pictures = [rgb_of(samples[number].crop(facts.layout, wide), full=facts.layout.full) for number in numbers]
    looks = [detection.look(picture, threads=threads, heed=heed) for picture in pictures]
    if found.given is None:
        looks = detection.weighed(looks, pictures)
    if found.given is None and found.score < 1:
        together = detection.likely(looks)
        inner = _linked(
            together >= 128,
            tuple(a - b for a, b in zip(found.inner, (wide[0], wide[0], wide[2], wide[2]), strict=True)),
        )
        if inner is None:
            return False
        found.inner = (inner[0] + wide[0], inner[1] + wide[0], inner[2] + wide[2], inner[3] + wide[2])
        top, bottom, left, right = found.inner
        found.box = _around(left, top, right - left, bottom - top, facts)
    # Nothing is known of what lies further around than was looked at.
    top, bottom = max(found.box[0], wide[0]), min(found.box[1], wide[1])
    left, right = max(found.box[2], wide[2]), min(found.box[3], wide[3])
    found.box = (top, bottom, left, right)
    here = np.s_[top - wide[0] : bottom - wide[0], left - wide[2] : right - wide[2]]
    found.looks = [each.within(*here) for each in looks]
    found.pictures = [np.ascontiguousarray(picture[here]) for picture in pictures]
    return True


def _linked(tight: NDArray[np.bool_], inner: tuple[int, ...]) -> Box | None:
    """The box around all that belongs to what lies in a box: words of one line, a logo and its name."""
    gap = int(np.clip((inner[1] - inner[0]) // 2, _MAX_GAP_PX, _MAX_WORD_GAP_PX)) | 1
    joined = cv2.dilate(tight.view(np.uint8), np.ones((gap, gap), np.uint8))
    _, labels = cv2.connectedComponents(joined, connectivity=8, ltype=cv2.CV_32S)
    part = np.s_[max(0, inner[0]) : inner[1], max(0, inner[2]) : inner[3]]
    touched = np.unique(labels[part][tight[part]])
    if len(touched) == 0:
        return None
    mine = tight & np.isin(labels, touched)
    rows, columns = np.flatnonzero(mine.any(1)), np.flatnonzero(mine.any(0))
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def varied(which: NDArray[np.intp], most: int) -> list[int]:
    """Numbers of samples that have the mark, of as many backgrounds as there are."""
    queues = [list(np.flatnonzero(which == number)) for number in np.unique(which[which >= 0])]
    if len(queues) > most:  # of all times
        queues = [queues[round(number * (len(queues) - 1) / max(1, most - 1))] for number in range(most)]
    chosen: list[int] = []
    while len(chosen) < most and any(queues):
        for queue in queues:
            if queue and len(chosen) < most:
                chosen.append(int(queue.pop(len(queue) // 2)))
    return sorted(chosen)


def _judge(found: Found, all_steps: list[templates.Steps], mask: NDArray[np.bool_]) -> None:
    """How sure it is that this is a mark: what lies over the picture stays when the picture changes."""
    everywhere = templates.backgrounds(all_steps, mask, np.ones(len(all_steps), np.bool_))
    others = int(everywhere.max()) + 1
    count = found.backgrounds
    if count >= _MIN_PERSISTING_BACKGROUNDS:
        many = min(1.0, (count - _MIN_PERSISTING_BACKGROUNDS + 1) / _MANY_BACKGROUNDS_COUNT)
        found.score = min(0.98, 0.25 + 0.35 * many + 0.4 * found.seen)
        found.reasons.append(f"it stays the same over {count} different pictures")
    elif others < _MIN_PERSISTING_BACKGROUNDS:  # the clip stands still: nothing but the eye can tell
        # What is hidden at times lies behind something, and no mark does.
        found.score = (
            _STILL_CLIP_RATIO * found.seen
            if found.presence.there.mean() > MIN_RESTING_RATIO
            else _FEW_VIEWS_RATIO * found.seen
        )
        found.reasons.append("the picture around it does not change, so it may belong to it")
    else:
        # A title, or writing of the scene, stays as long as one picture: over many pictures it is a mark.
        found.score = found.seen * (_SINGLE_VIEW_RATIO if others >= _MANY_PICTURES_COUNT else _FEW_VIEWS_RATIO)
        found.reasons.append(f"it is seen over {count} of {others} different pictures alone")
    found.score = round(found.score, 3)
    found.reasons.append(f"it looks like a mark ({found.seen:.0%})")

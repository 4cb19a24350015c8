"""All that may be a mark in a clip: what persists in one place, and what is seen in one place after the other."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from headrace.removal.images.eye.model import Picture
from headrace.removal.images.views import detection
from headrace.removal.video import moving_marks, templates
from headrace.removal.video.probing import Facts
from headrace.removal.video.sampling import Box, Sample
from headrace.removal.video.static_marks import (
    MIN_RESTING_RATIO,
    MIN_SAME_RATIO,
    Found,
    Heed,
    Seed,
    canvas_of,
    follow,
    look_closer,
    overlap,
    seeds_of,
    steps_in,
)

_WINDOW_MARGIN_PX = 96  # pixels around a mark that moves
_MIN_MOVING_BACKGROUNDS = 4  # different pictures that a thing moves over, from which on it is no part of them
_MIN_SAMPLES_RATIO = 0.6  # of the samples that have it
_MIN_TOUCHING_RATIO = 0.2  # of the smaller of two boxes: so much of it in the other, and they belong together
# Of the samples that have one of two, from which on they are the same; if it jumps
_MIN_COINCIDING_RATIO = 0.5
_MIN_JUMPING_RATIO = 0.1
_MIN_MOVING_SCORE = 0.5  # the eye's score from which on what moves is looked at further
MIN_CONTAINED_RATIO = 0.8  # share of a mark's area inside a user-drawn box
_MAX_FIRST_LOOK_PIXELS = 360_000  # pixels of a frame, for the first look


def find(facts: Facts, samples: list[Sample], *, threads: int, heed: Callable[[float], object]) -> list[Found]:
    """What may be a mark, the surest first."""
    step = max(1, math.ceil(math.sqrt(facts.width * facts.height / _MAX_FIRST_LOOK_PIXELS)))
    numbers = detection.spread(len(samples))
    looks: list[detection.Look] = []
    canvases: list[Picture] = []
    for done, number in enumerate(numbers):
        canvases.append(canvas_of(samples[number], facts.layout, step))
        looks.append(detection.look(canvases[-1], threads=threads, heed=partial(heed, done / (len(numbers) + 2))))
    seeds = seeds_of(canvases, looks, numbers, step, facts)
    found: list[Found] = []
    followed_up: list[Seed] = []

    def followed() -> None:
        heed(len(numbers) / (len(numbers) + 2))

    for seed in seeds:
        followed()
        if any(overlap(seed.box, other.box) > MIN_SAME_RATIO for other in found):
            continue
        one = follow(seed, samples, facts, threads, followed)
        if one is not None and all(overlap(one.box, other.box) <= MIN_SAME_RATIO for other in found):
            found.append(one)
            followed_up.append(seed)
    resting = [_rests(seed, each, seeds) for seed, each in zip(followed_up, found, strict=True)]
    jumping = [(seed, each) for seed, each, rests in zip(followed_up, found, resting, strict=True) if not rests]
    stays = [each.box for each, rests in zip(found, resting, strict=True) if rests]
    moving = _moving(seeds, jumping, stays, samples, facts, threads, followed)
    if moving is not None:
        found = [
            each
            for each, rests in zip(found, resting, strict=True)
            if not _passes(moving, each, samples, _MIN_COINCIDING_RATIO if rests else _MIN_JUMPING_RATIO)
        ]
    return sorted([*found, *([moving] if moving else [])], key=lambda each: -each.score)


def within(boxes: list[Found], found: list[Found], samples: list[Sample]) -> list[Found]:
    """The findings that lie in a user-drawn box at its time: those are marks."""
    kept = []
    for each in found:
        inside = [box for box in boxes if _lies_in(each, box)]
        if not inside:
            continue
        box = inside[0]
        times = np.array([box.presence.there[_nearest(samples, seconds)] for seconds, _, _ in each.path], np.bool_)
        there = times if each.moves else box.presence.there
        if not (each.which[there] >= 0).any():
            continue
        each.which = np.where(there, each.which, -1)
        each.within = box.within
        each.score, each.reasons = 1.0, ["the user marked it", *each.reasons]
        kept.append(each)
    return kept


def _lies_in(found: Found, box: Found) -> bool:
    top, bottom, left, right = found.inner
    area = (bottom - top) * (right - left)
    places = [(down, across) for _, down, across in found.path] or [(0, 0)]
    return all(
        _shared((top + down, bottom + down, left + across, right + across), box.inner) >= MIN_CONTAINED_RATIO * area
        for down, across in places
    )


def _shared(one: Box, other: Box) -> int:
    down = min(one[1], other[1]) - max(one[0], other[0])
    across = min(one[3], other[3]) - max(one[2], other[2])
    return max(0, down) * max(0, across)


def _nearest(samples: list[Sample], seconds: float) -> int:
    return int(np.argmin([abs(each.seconds - seconds) for each in samples]))


def _rests(seed: Seed, found: Found, seeds: list[Seed]) -> bool:
    """Whether it is in one place all the time. Over a picture that stands still, the looks say so, not the outline:
    that has the picture's own edges, which are there without the mark, too."""
    if found.presence.there.mean() <= MIN_RESTING_RATIO:
        return False
    looks = {each.samples[0] for each in seeds if len(each.samples) == 1}
    there = {
        each.samples[0] for each in seeds if len(each.samples) == 1 and overlap(each.box, seed.box) > MIN_SAME_RATIO
    }
    return len(seed.samples) > 1 or 2 * len(there) > len(looks)


def _moving(
    seeds: list[Seed], jumping: list[tuple[Seed, Found]], stays: list[Box], samples: list[Sample], facts: Facts,
    threads: int, heed: Heed,
) -> Found | None:  # fmt: skip
    """The mark that is seen in one place after the other: by single looks, or found in each for some of the time."""
    seen = [
        _cut_out(seed, int(np.argmax(each.presence.sureness * each.presence.there)), facts)
        for seed, each in jumping
        if len(seed.samples) > 1
    ]
    seen += [
        _cut_out(seed, seed.samples[0], facts)
        for seed in seeds
        if len(seed.samples) == 1 and all(overlap(seed.box, other) <= MIN_SAME_RATIO for other in stays)
    ]
    fewest = 2 if len(jumping) > 1 else moving_marks.MIN_PLACES
    if len({each.number for each in seen}) < fewest:
        return None
    track = moving_marks.track(seen, samples, facts, fewest, heed)
    if track is None or track.seen < _MIN_MOVING_SCORE or track.there.mean() < _MIN_SAMPLES_RATIO:
        return None
    high, wide = track.inner[1] - track.inner[0], track.inner[3] - track.inner[2]
    size = (high + 2 * _WINDOW_MARGIN_PX + high % 2, wide + 2 * _WINDOW_MARGIN_PX + wide % 2)
    path = tuple(
        (each.seconds, top - _WINDOW_MARGIN_PX, left - _WINDOW_MARGIN_PX)
        for each, (top, left), there in zip(samples, track.places, track.there, strict=True)
        if there
    )
    views, shown = moving_marks.windows(samples, facts, path, *size), moving_marks.window_facts(facts, *size)
    inside = np.zeros(size, np.bool_)
    inside[_WINDOW_MARGIN_PX : _WINDOW_MARGIN_PX + high, _WINDOW_MARGIN_PX : _WINDOW_MARGIN_PX + wide] = True
    # Titles that roll over a plain ground move with it: there all grounds are one.
    all_steps, mask = steps_in(views, (0, size[0], 0, size[1]), inside, shown)
    which = templates.backgrounds(all_steps, mask, np.ones(len(views), np.bool_))
    presence = templates.Presence(track.there, track.likeness, track.likeness)
    inner = (_WINDOW_MARGIN_PX, _WINDOW_MARGIN_PX + high, _WINDOW_MARGIN_PX, _WINDOW_MARGIN_PX + wide)
    uncut = moving_marks.uncut(path, inner, facts)
    if len(np.unique(which[uncut])) >= _MIN_MOVING_BACKGROUNDS:
        which = np.where(uncut, which, -1)
    found = Found((0, size[0], 0, size[1]), track.seen, presence, which, inner, path=path, window=size)
    if found.backgrounds < _MIN_MOVING_BACKGROUNDS:
        return None
    found.score = round(min(0.95, 0.7 + 0.25 * track.seen), 3)
    found.reasons = [
        f"it moves over {found.backgrounds} different pictures", f"it looks like a mark ({track.seen:.0%})"
    ]  # fmt: skip
    return found if look_closer(found, views, shown, threads, heed) else None


def _cut_out(seed: Seed, number: int, facts: Facts) -> moving_marks.Seen:
    top, bottom, left, right = (
        min(max(0, at), most) for at, most in zip(seed.inner, 2 * (facts.height,) + 2 * (facts.width,), strict=True)
    )
    here = np.s_[top - seed.box[0] : bottom - seed.box[0], left - seed.box[2] : right - seed.box[2]]
    mask = np.ascontiguousarray(seed.mask[here])
    return moving_marks.Seen(number, (top, top + mask.shape[0], left, left + mask.shape[1]), mask, seed.score)


def _passes(moving: Found, other: Found, samples: list[Sample], share: float) -> bool:
    """Whether a detection in one place belongs to the moving mark, which is visible for a similar share of its time."""
    times = {each.seconds for each, there in zip(samples, other.presence.there, strict=True) if there}
    top, bottom, left, right = moving.inner
    over = {
        seconds
        for seconds, down, across in moving.path
        if overlap((top + down, bottom + down, left + across, right + across), other.inner) > _MIN_TOUCHING_RATIO
    }
    return len(over & times) >= share * len(times)

"""What a mark in a clip is made of, and how it is best taken off: tried on the sampled frames first."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.removal.eye.blocks import Block
from headrace.removal.eye.drafting import drafted
from headrace.removal.eye.model import Mask
from headrace.removal.video.colours import planes_of, rgb_of
from headrace.removal.video.erasing import Eraser
from headrace.removal.video.planes import Layout
from headrace.removal.video.sampling import Box, Sample
from headrace.removal.views import looking
from headrace.removal.views.solving import Guess, Matte, solve

MANY = 4  # different backgrounds from which on they tell what the mark is made of
_LOOKS = 6
_GONE = 0.3  # of the mark: what may be left


@dataclass(frozen=True, slots=True)
class Residue:
    """How much of a mark is in the frames: by its outline, and by the eye; 1 is all of it."""

    outline: float
    seen: float

    @property
    def worst(self) -> float:
        return max(self.outline, self.seen)

    @property
    def gone(self) -> bool:
        return self.worst <= _GONE


def matte_of(
    samples: list[Sample],
    which: NDArray[np.intp],
    layout: Layout,
    box: Box,
    *,
    threads: int,
    allowed: Mask | None = None,
    given: Mask | None = None,
) -> Matte | None:
    """The mark in the box by all samples that have it (``which`` is not -1). None where the eye sees none."""
    there = np.flatnonzero(which >= 0)
    crops = [samples[number].crop(layout, box) for number in _varied(which, 3 * _LOOKS * MANY)]
    pictures = [rgb_of(samples[number].crop(layout, box), full=layout.full) for number in _varied(which, _LOOKS)]
    looks = [looking.look(picture, threads=threads) for picture in pictures]
    guess = looking.guess(looks, allowed, given=given)
    if not guess.tight.any():
        return None
    if len(np.unique(which[there])) < MANY:
        return _by_eye(pictures, looks, guess, layout)
    hue = guess.tint / np.maximum(guess.alpha, 0.02)[..., None]
    tint = planes_of(np.clip(hue, 0, 255), full=layout.full) * guess.alpha[..., None]
    light = (layout.black, layout.white)
    return solve(crops, Guess(guess.tight, guess.loose, guess.alpha, tint), light=light)


def _varied(which: NDArray[np.intp], most: int) -> list[int]:
    """Numbers of samples that have the mark, of as many backgrounds as there are."""
    queues = [list(np.flatnonzero(which == number)) for number in np.unique(which[which >= 0])]
    chosen: list[int] = []
    while len(chosen) < most and any(queues):
        for queue in queues:
            if queue and len(chosen) < most:
                chosen.append(int(queue.pop(len(queue) // 2)))
    return sorted(chosen)


def _by_eye(pictures: list[NDArray[np.uint8]], looks: list[looking.Look], guess: Guess, layout: Layout) -> Matte:
    """Where the picture stands still, a single frame tells as much as all: as the eye solves a picture."""
    opacities, tints = [], []
    for picture, look in zip(pictures, looks, strict=True):
        block = Block(
            picture.astype(np.float32),
            guess.alpha,
            guess.tint,
            look.seen[5].astype(np.float32),
            look.seen[0].astype(np.float32),
            guess.tight,
            guess.loose,
            1,
        )
        draft = drafted(block)
        opacities.append(draft.opacity)
        tints.append(planes_of(draft.colour, full=layout.full) * draft.opacity[..., None])
    opacity, tint = np.median(opacities, 0), np.median(tints, 0)
    return Matte(opacity.astype(np.float32), tint.astype(np.float32), guess.loose, 0.5)


def attempt(
    samples: list[Sample], which: NDArray[np.intp], layout: Layout, box: Box, eraser: Eraser, *, threads: int
) -> Residue:
    """What a way of taking the mark off leaves in the samples."""
    before, after, weights = [], [], []
    seen_before = seen_after = 0.0
    looked = set(_varied(which, 3))
    for number in _varied(which, 24):
        planes = [plane.copy() for plane in samples[number].planes]
        strength, weight = eraser.measure(planes[0])
        if number in looked:
            seen_before += _seen(planes, layout, box, threads)
        eraser.erase(planes)
        left, _ = eraser.measure(planes[0])
        if number in looked:
            seen_after += _seen(planes, layout, box, threads)
        before.append(strength)
        after.append(left)
        weights.append(weight)
    told = max(float(np.dot(weights, before)), 1e-6)
    outline = abs(float(np.dot(weights, after))) / told
    return Residue(outline, min(1.0, seen_after / max(seen_before, 1.0)))


def _seen(planes: list[NDArray[np.generic]], layout: Layout, box: Box, threads: int) -> float:
    """How much of a mark the eye sees in the box."""
    from headrace.removal.video.planes import cropped

    look = looking.look(rgb_of(cropped(planes, layout, box), full=layout.full), threads=threads)
    return float(np.where(look.seen[0] > 60, look.seen[0], 0).sum(dtype=np.float64))


def way_of(
    samples: list[Sample],
    which: NDArray[np.intp],
    layout: Layout,
    box: Box,
    matte: Matte,
    *,
    threads: int,
    heed: Callable[[], object],
) -> tuple[Eraser, Residue]:
    """The first way that leaves little of the mark, or the one that leaves least."""
    tried: list[tuple[Eraser, Residue]] = []
    for invent in (False, True):
        heed()
        eraser = Eraser(box, matte, layout, invent=invent)
        residue = attempt(samples, which, layout, box, eraser, threads=threads)
        tried.append((eraser, residue))
        if residue.gone:
            break
    return min(tried, key=lambda each: each[1].worst)

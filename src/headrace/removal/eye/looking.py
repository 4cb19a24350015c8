"""Finding a mark: a coarse look at everything, then a fine one where something was seen."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.eye import islands, repeats, scales
from headrace.removal.eye.model import JOIN, MOST_PIXELS, Hints, Levels, Mask, Picture, Region, Sight, loosened, shrunk
from headrace.removal.eye.repeats import ODDS
from headrace.removal.eye.tiles import Box, Copy, Eye, cut_up

_AROUND = 160  # what is seen of the surroundings of a mark
_MANY_PIXELS = 12_500_000  # planes of larger pictures have no more than so many
# A mark is taken off a smaller copy only if that has so many pixels (the network has learnt from pictures of this size)
# and shows so much of the mark that the larger one does not (detail is lost, too), or strokes so mostly very wide.
_LEAST_COPY, _HIDDEN, _VERY_WIDE = 500_000, 0.006, 0.5
# From here on, at half its size, a picture may carry letters larger than a tile.
_LARGE = 3_000_000

# On the probability, in 255ths: where a fine look is worth while, and what a mark must hold.
# Chosen so that clean photographs stay untouched (MODEL_CARD.md).
_WORTH, _HIGH = 200, 200
_FEWEST = 60  # pixels over _WORTH that are worth it
_COARSELY = 0.7  # how much the coarse look counts beside the fine one


class _Rule(NamedTuple):
    """What makes a mark of pixels that hang together."""

    low: int  # where it begins
    alone: float  # the mean of its odds if there is no other
    beside: float  # beside one that is certain
    fewest: int = 60  # pixels over _HIGH that it must hold
    few: int = 20  # beside one that is certain


_LOOSELY, _FIRMLY, _REPEATED = _Rule(60, 1.5, 1.5), _Rule(140, 3.0, 1.5), _Rule(80, -1.5, -1.5, 0, 0)

# The picture's score from the size of what was seen (its logarithm), and from what the fine and the coarse look said of
# it, by the mean of their odds: false alarms are small, or doubtful, or only one look sees them. See MODEL_CARD.md.
_BY_SIZE, _BY_FINE, _BY_COARSE, _OFFSET = 1.02, 0.68, 0.53, -5.73
_BY_REPEATS = 3.0  # no clean photograph has false alarms that repeat


def look(image: NDArray[np.generic], *, threads: int = 2, hints: Hints | None = None) -> Sight:
    """What mark the image carries, if any: grey, RGB or RGBA of 8 or 16 bits, of any size.

    The same image gives the same sight, whatever the number of threads; fewer than two are two.
    """
    picture = as_picture(image)
    height, width = picture.shape[:2]
    step = 1 if height * width <= MOST_PIXELS else 2 ** math.ceil(math.log2(height * width / _MANY_PIXELS) / 2)
    eye = Eye(threads, frugal=step > 1)
    canvas = picture if step == 1 else shrunk(picture, step)
    half = eye.halved(canvas)
    quarter = eye.halved(half.canvas) if half and half.canvas[..., 0].size > _LARGE else None
    found = _found(eye, canvas, half, quarter)
    finer: Sight | None = None
    hidden, wide = _HIDDEN, _VERY_WIDE
    while half and half.seen[0].size >= _LEAST_COPY and scales.may_be_wide(half.seen[0]):
        quarter = quarter or eye.halved(half.canvas)
        wider = _found_wider(half, quarter, found.tight, hidden, wide) if quarter else None
        if wider is None:
            break
        finer = _sight(_besides(found, half, wider.tight), step, height, width, finer) or finer
        found, step, half, quarter = wider, 2 * step, quarter, None
        hidden, wide = 4 * hidden, 4 * wide  # each copy has a quarter of the detail
    return _sight(found, step, height, width, finer) or _nothing(height, width, step, canvas.shape[:2])


class _Found(NamedTuple):
    """The marks on a copy."""

    seen: Levels
    tight: Mask
    score: float
    regions: list[Region]


def _found(eye: Eye, canvas: Picture, half: Copy | None, quarter: Copy | None) -> _Found:
    """The marks by a coarse look at all of the canvas, and a fine one where something was seen."""
    size = canvas.shape[:2]
    coarse = None
    if half:
        likely = half.seen[0]
        if quarter:
            likely = np.maximum(likely, _enlarged(quarter.seen[0], likely.shape))
        coarse = _enlarged(likely, size)
    boxes = cut_up(*size) if coarse is None else _tiles_around(coarse)
    seen, looked = eye.fine(canvas, boxes)
    if not boxes:
        return _Found(seen, np.zeros(size, np.bool_), 0.0, [])
    regions, tight, score = _made_out(seen, seen[0] if coarse is None else coarse, looked)
    islands.claim(canvas, seen, tight, regions)
    return _Found(seen, tight, score, regions)


def _found_wider(copy: Copy, smaller: Copy, larger: Mask, hidden: float, wide: float) -> _Found | None:
    """The marks on a copy by what was seen of all of it.

    None unless so much of them is hidden on the ``larger`` copy, or their strokes are so mostly very wide.
    """
    coarse = _enlarged(smaller.seen[0], copy.canvas.shape[:2])
    everywhere = np.ones(coarse.shape, np.bool_)
    seen = copy.seen.copy()
    regions, tight, score = _made_out(seen, coarse, everywhere)
    verdict = scales.compare(tight, seen[0], coarse, larger)
    if verdict.hidden <= hidden and verdict.very_wide <= wide:
        return None
    if verdict.others.any():
        seen = copy.seen.copy()
        seen[0][verdict.others] = 0
        regions, tight, score = _made_out(seen, coarse, everywhere)
    if not regions:  # without the rest it is no mark by itself
        return None
    islands.claim(copy.canvas, seen, tight, regions)
    return _Found(seen, tight, score, regions)


def _besides(found: _Found, half: Copy, wider: Mask) -> _Found:
    """What was found on a copy besides the marks that are taken off the smaller one."""
    taken = cv2.dilate(wider.view(np.uint8), np.ones((2 * JOIN + 1,) * 2, np.uint8))
    size = found.tight.shape
    apart = cv2.resize(taken, size[::-1], interpolation=cv2.INTER_NEAREST) == 0
    coarse = _enlarged(half.seen[0], size)
    likely = found.seen[0] * (found.tight & apart)
    regions, tight = _regions(likely, coarse, (_LOOSELY,))
    return _Found(found.seen, tight, found.score, regions)


def _sight(found: _Found, step: int, height: int, width: int, finer: Sight | None) -> Sight | None:
    seen, tight = found.seen, found.tight
    if not found.regions:
        return None
    loose = loosened(tight)
    return Sight(
        height,
        width,
        step,
        tight,
        loose,
        seen[0] * loose,
        seen[1] * loose,
        np.ascontiguousarray(np.moveaxis(seen[2:5], 0, 2)) * loose[..., None],
        seen[5].copy(),  # not a view: the planes that it belongs to can go
        found.score,
        (*(_scaled(region, step, height, width) for region in found.regions), *(finer.regions if finer else ())),
        finer,
    )


def _nothing(height: int, width: int, step: int, size: tuple[int, ...]) -> Sight:
    empty = np.zeros(size, np.uint8)
    mask = empty.view(np.bool_)
    return Sight(height, width, step, mask, mask, empty, empty, np.zeros((*size, 3), np.uint8), empty, 0.0, ())


def _made_out(seen: Levels, coarse: Levels, looked: Mask) -> tuple[list[Region], Mask, float]:
    """The marks that the two looks make out: regions, pixels, score. Of repeated ones all copies go into ``seen``."""
    lattice = repeats.find(seen[0])
    together = repeats.fold(seen, coarse, looked, lattice) if lattice else None
    if together is None:
        regions, tight = _regions(seen[0], coarse, (_LOOSELY, _FIRMLY))
        return regions, tight, _score(seen[0][tight], coarse[tight])
    regions, tight = _regions(together.likely, together.coarse, (_REPEATED,))
    # A mark may stand beside the repeated one.
    apart = cv2.dilate(tight.view(np.uint8), np.ones((2 * JOIN + 1,) * 2, np.uint8)) == 0
    others, single = _regions(seen[0] * apart, coarse, (_LOOSELY,))
    together.into(seen, kept=single)
    np.copyto(together.coarse, coarse, where=single)
    tight |= single
    return _sorted([*regions, *others]), tight, _score(seen[0][tight], together.coarse[tight], _BY_REPEATS)


def as_picture(image: NDArray[np.generic]) -> Picture:
    """Any image as RGB of 8 bits; transparency is left out."""
    if image.dtype == np.uint16:
        image = (image.astype(np.uint16) >> np.uint16(8)).astype(np.uint8)
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or 0 in image.shape:
        raise ValueError("an image has 8 or 16 bits and two or three dimensions")
    if image.ndim == 2 or image.shape[2] < 3:
        grey = image if image.ndim == 2 else image[..., 0]
        return np.repeat(grey[..., None], 3, 2).astype(np.uint8, copy=False)
    return np.ascontiguousarray(image[..., :3]).astype(np.uint8, copy=False)


def _enlarged(plane: Levels, size: tuple[int, ...]) -> Levels:
    return cv2.resize(plane, size[::-1], interpolation=cv2.INTER_LINEAR)  # type: ignore[return-value]


def _tiles_around(coarse: Levels) -> list[Box]:
    """Tiles over all that the coarse look found worth it: around each find, or around those that lie near together."""
    height, width = coarse.shape
    worth = (coarse >= _WORTH).view(np.uint8)
    joined = cv2.dilate(worth, np.ones((JOIN, JOIN), np.uint8))
    _, labels, finds, _ = cv2.connectedComponentsWithStats(joined, connectivity=8, ltype=cv2.CV_32S)
    pixels = np.bincount(labels[worth.view(np.bool_)], minlength=len(finds))
    # Drawn with their surroundings, finds that share some become one.
    drawn = np.zeros((height, width), np.uint8)
    for left, top, wide, high, _ in finds[1:][pixels[1:] >= _FEWEST]:
        drawn[max(0, top - _AROUND) : top + high + _AROUND, max(0, left - _AROUND) : left + wide + _AROUND] = 1
    _, _, groups, _ = cv2.connectedComponentsWithStats(drawn, connectivity=4, ltype=cv2.CV_32S)
    tiles = [tile for left, top, wide, high, _ in groups[1:].tolist() for tile in cut_up(high, wide, top, left)]
    return [tile for tile in tiles if drawn[tile].any()]


def _regions(likely: Levels, coarse: Levels, rules: tuple[_Rule, ...]) -> tuple[list[Region], Mask]:
    """Marks: pixels that hang together and that both looks make likely enough, by the mean of their odds.

    What hangs together loosely, by doubtful pixels, and is no mark as a whole comes apart and is weighed again.
    """
    tight = np.zeros(likely.shape, np.bool_)
    regions: list[Region] = []
    for rule in rules:
        regions += _hanging_together(likely, coarse, tight, rule, certain=bool(regions))
    return _sorted(regions), tight


def _sorted(regions: list[Region]) -> list[Region]:
    return sorted(regions, key=lambda region: (-region.score, region.top, region.left))


def _hanging_together(likely: Levels, coarse: Levels, tight: Mask, rule: _Rule, *, certain: bool) -> Iterator[Region]:
    """The marks among what the rule lets begin and is not in ``tight`` yet; they are entered there."""
    above = ((likely >= rule.low) & ~tight).view(np.uint8)
    near = cv2.dilate(above, np.ones((JOIN, JOIN), np.uint8))
    count, labels, boxes, _ = cv2.connectedComponentsWithStats(near, connectivity=8, ltype=cv2.CV_32S)
    # Only of the pixels that count: a picture of many megapixels is mostly unmarked.
    at = np.flatnonzero(above)
    label, chance = labels.ravel()[at], likely.ravel()[at]
    pixels = np.bincount(label, minlength=count)
    some = np.maximum(pixels, 1)
    strong = np.bincount(label[chance >= _HIGH], minlength=count)
    score = np.bincount(label, chance, minlength=count) / some / 255
    odds = np.bincount(label, ODDS[chance] + _COARSELY * ODDS[coarse.ravel()[at]], minlength=count) / some
    good = (odds >= rule.alone) & (strong >= rule.fewest)
    if certain or good.any():
        good |= (odds >= rule.beside) & (strong >= rule.few)
    good &= pixels > 0  # the ground hangs together, too
    tight.ravel()[at[good[label]]] = True
    for i in np.flatnonzero(good):
        left, top, width, height = (int(v) for v in boxes[i, :4])
        yield Region(left, top, width, height, round(float(score[i]), 4), int(pixels[i]))


def _score(fine: Levels, coarse: Levels, already: float = 0.0) -> float:
    if len(fine) == 0:
        return 0.0
    told = already + _BY_FINE * ODDS[fine].mean() + _BY_COARSE * ODDS[coarse].mean()
    return 1 / (1 + math.exp(-(_BY_SIZE * math.log10(len(fine)) + float(told) + _OFFSET)))


def _scaled(region: Region, step: int, height: int, width: int) -> Region:
    if step == 1:
        return region
    left, top = region.left * step, region.top * step
    right, bottom = min(width, left + region.width * step), min(height, top + region.height * step)
    return Region(left, top, right - left, bottom - top, region.score, region.pixels * step * step)

"""Finding a mark: a coarse look at everything, then a fine one where something was seen."""

import math
from dataclasses import replace
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye import islands, plates, repeats, scales, strokes
from headrace.removal.images.eye.frames import find_bars
from headrace.removal.images.eye.hinting import HintedDetector, Hints, shrunk_mask
from headrace.removal.images.eye.inference import Box, Copy, Detector, cut_up
from headrace.removal.images.eye.judging import Judged, judge
from headrace.removal.images.eye.model import (
    MAX_FULL_SIZE_PIXELS,
    MAX_JOINED_GAP_PX,
    MIN_FRUGAL_PIXELS,
    Detection,
    Levels,
    Mask,
    Picture,
    Region,
    loosened,
    shrunk,
)
from headrace.removal.images.eye.repeats import ODDS

_MARGIN_PX = 160  # what is seen of the surroundings of a mark
_MANY_PIXELS = 12_500_000  # planes of larger pictures have at most this many
# A mark is removed from a smaller copy only if that has this many pixels (the network was trained on pictures of this
# size) and shows this share of the mark that the larger one lacks (detail is lost, too), or mostly wide strokes.
_MIN_COPY_PIXELS, _MIN_HIDDEN_RATIO, _MIN_WIDE_STROKES_RATIO = 500_000, 0.006, 0.5
# From here on, at half its size, a picture may carry letters larger than a tile.
_MIN_LARGE_PIXELS = 3_000_000

# A copy that shows a mark on this share of its pixels is believed only where another copy agrees.
_MAX_UNCHECKED_RATIO, _MIN_AGREEING_LEVELS = 0.35, 128

# On the probability, in 255ths: where a fine look is worth while in large pictures.
_MIN_FINE_LOOK_LEVELS = 140
_MIN_FINE_LOOK_PIXELS = 20  # pixels over _MIN_FINE_LOOK_LEVELS that are worth it
_MAX_FINE_ALL_OVER_PIXELS = (
    2_000_000  # pixels of pictures that are looked at finely all over: the coarse look misses small marks
)
# Copies of a repeated mark: where they begin, and the mean of their odds by the fine look and partly by the coarse one.
_MIN_COPY_LEVELS, _MIN_COPY_ODDS, _COARSE_ODDS_RATIO = 80, -1.5, 0.7
_MIN_DRAWN_LEVELS = (
    30  # the probability, in 255ths, below which the network says nothing about the alpha of a drawn mark
)

# The score of a repeated mark from its size (its logarithm), and from what the fine and the coarse look said of it, by
# the mean of their odds. See docs/why/eye-model-card.md.
_SIZE_COEFFICIENT, _FINE_ODDS_COEFFICIENT, _COARSE_ODDS_COEFFICIENT, _SCORE_OFFSET_ODDS = 1.02, 0.68, 0.53, -5.73
_DRAWN_BOX_SCORE = 0.75  # the score of what only a drawn box says
_REPEATS_ODDS = 3.0  # no clean photograph has false alarms that repeat


def detect(image: NDArray[np.generic], *, threads: int = 2, hints: Hints | None = None) -> Detection:
    """What mark the image carries, if any: grey, RGB or RGBA of 8 or 16 bits, of any size.

    The same image gives the same detection, whatever the number of threads; fewer than two are two. ``hints`` say what
    is known: a mask is taken as it is, and only the mark's alpha and colour are looked for.
    """
    picture = as_picture(image)
    height, width = picture.shape[:2]
    step = 1 if height * width <= MAX_FULL_SIZE_PIXELS else 2 ** math.ceil(math.log2(height * width / _MANY_PIXELS) / 2)
    canvas = picture if step == 1 else shrunk(picture, step)
    frugal, size = height * width > MIN_FRUGAL_PIXELS, (height, width)
    eye = Detector(threads, frugal=frugal)
    hints = _besides_bars(hints, picture)
    if hints is None:
        return _searched(eye, canvas, step, size)
    hinted = HintedDetector(threads, frugal=frugal, hints=hints, size=size)
    if hints.mask is None:
        return _within(_searched(hinted, canvas, step, size), hinted)
    if hints.mask.shape != size:
        raise ValueError("the mask has another size than the image")
    found = _given(eye, canvas, shrunk_mask(hints.mask, canvas.shape[:2]))
    detection = _within(
        _detected(found, step, height, width, None) or _nothing(height, width, step, canvas.shape[:2]), hinted
    )
    return replace(detection, allowed=detection.loose, confirmed=True)


def _besides_bars(hints: Hints | None, picture: Picture) -> Hints | None:
    """The hints, and that nothing in a bar at a border is a mark, unless the user says where the mark is."""
    if hints is not None and (hints.places or hints.mask is not None):
        return hints
    bars = find_bars(picture)
    if not bars:
        return hints
    return replace(hints or Hints(), keep=(*(hints.keep if hints else ()), *bars))


def _searched(eye: Detector, canvas: Picture, step: int, size: tuple[int, int]) -> Detection:
    """What the detector finds on the canvas (``step`` times smaller than the picture) and on reduced copies of it."""
    height, width = size
    half = eye.halved(canvas)
    if half and (half.seen[0] >= _MIN_AGREEING_LEVELS).mean() > _MAX_UNCHECKED_RATIO:
        half = _confirmed_by_others(eye, canvas, half)
    quarter = eye.halved(half.canvas) if half and half.canvas[..., 0].size > _MIN_LARGE_PIXELS else None
    found = _found(eye, canvas, half, quarter)
    finer: Detection | None = None
    hidden, wide = _MIN_HIDDEN_RATIO, _MIN_WIDE_STROKES_RATIO
    while half and half.seen[0].size >= _MIN_COPY_PIXELS and scales.may_be_wide(half.seen[0]):
        quarter = quarter or eye.halved(half.canvas)
        wider = _found_wider(half, quarter, found.tight, hidden, wide) if quarter else None
        if wider is None:
            break
        finer = _detected(_besides(canvas, found, half, wider.tight), step, height, width, finer) or finer
        canvas, found, step, half, quarter = half.canvas, wider, 2 * step, quarter, None
        hidden, wide = 4 * hidden, 4 * wide  # each copy has a quarter of the detail
    return _detected(found, step, height, width, finer) or _nothing(height, width, step, canvas.shape[:2])


def _confirmed_by_others(eye: Detector, canvas: Picture, half: Copy) -> Copy:
    """The copy without what neither the canvas nor a smaller copy shows: grain of one size looks like a mark."""
    fine, _ = eye.fine(canvas, cut_up(*canvas.shape[:2]))
    size = half.seen.shape[1:]
    agreed = cv2.resize(fine[0], size[::-1], interpolation=cv2.INTER_AREA)
    smaller = eye.halved(half.canvas)
    if smaller is not None:
        agreed = np.maximum(agreed, _enlarged(smaller.seen[0], size))
    seen = half.seen.copy()
    seen[0] = np.where(agreed >= _MIN_AGREEING_LEVELS, seen[0], np.minimum(seen[0], agreed))
    return Copy(half.canvas, seen)


def _within(detection: Detection, eye: HintedDetector) -> Detection:
    """The same with nothing changed where the hints forbid it, not even the margin of a mark."""
    allowed = eye.allowed(detection.tight.shape)
    finer = _within(detection.finer, eye) if detection.finer else None
    tight, loose = detection.tight & allowed, detection.loose & allowed
    return replace(detection, tight=tight, loose=loose, allowed=allowed, finer=finer, confirmed=eye.prior > 0)


class _Found(NamedTuple):
    """The marks on a copy."""

    seen: Levels
    regions: list[Region]
    tight: Mask
    certainty: Levels  # how likely each pixel's group is a mark
    score: float
    repeated: bool


def _found(eye: Detector, canvas: Picture, half: Copy | None, quarter: Copy | None) -> _Found:
    """The marks by a coarse look at all of the canvas, and a fine one where something was seen."""
    size = canvas.shape[:2]
    coarse = None
    if half:
        likely = half.seen[0]
        if quarter:
            likely = np.maximum(likely, _enlarged(quarter.seen[0], likely.shape))
        coarse = _enlarged(likely, size)
    everywhere = coarse is None or size[0] * size[1] <= _MAX_FINE_ALL_OVER_PIXELS or eye.prior > 0
    boxes = cut_up(*size) if everywhere or coarse is None else _tiles_around(coarse)
    seen, looked = eye.fine(canvas, boxes)
    judged = _made_out(canvas, seen, seen[0] if coarse is None else coarse, looked, eye.prior)
    if eye.prior > 0 and not judged.repeated:  # copies that agree need no hint
        eye.expect(seen)
        judged = _made_out(canvas, seen, seen[0] if coarse is None else coarse, looked, eye.prior)
    if half and not judged.repeated:
        scales.fill_in(seen, half.seen, judged.tight, judged.certainty)
    _complete(canvas, seen, judged)
    if isinstance(eye, HintedDetector) and eye.prior > 0 and not judged.repeated:
        judged = _with_strokes(canvas, seen, judged, eye.allowed(size))
    return _Found(seen, *judged)


def _with_strokes(canvas: Picture, seen: Levels, judged: Judged, allowed: Mask) -> Judged:
    """The mark in a user-drawn box, with the ink that the network missed."""
    claimed = strokes.claim(canvas, seen, judged.tight, allowed)
    if not claimed.any():
        return judged
    # The user said that the box holds a mark: separated strokes are as certain as detected ones.
    score = max(judged.score, _DRAWN_BOX_SCORE)
    judged.certainty[claimed] = round(255 * score)
    regions = [*judged.regions, *_regions(claimed, score)]
    return judged._replace(regions=sorted(regions, key=lambda r: (-r.score, r.top, r.left)), score=score)


def _complete(canvas: Picture, seen: Levels, judged: Judged) -> None:
    """Enters what was overlooked of the marks: ink inside a logo, the rest of a plate."""
    islands.claim(canvas, seen, judged.tight, judged.regions, judged.certainty)
    plates.complete(canvas, seen, judged.tight, judged.regions, judged.certainty)


def _given(eye: Detector, canvas: Picture, tight: Mask) -> _Found:
    """The user-drawn mark: alpha and colour where the network detects it, opaque elsewhere."""
    boxes = [box for box in cut_up(*tight.shape) if tight[box].any()]
    seen, _ = eye.fine(canvas, boxes)
    hidden = tight & (seen[0] < _MIN_DRAWN_LEVELS)
    seen[0][tight] = 255
    seen[1][hidden] = 255
    seen[2:5, hidden] = canvas[hidden].T
    return _Found(seen, _regions(tight, 1.0), tight, tight.view(np.uint8) * np.uint8(255), 1.0, False)


def _found_wider(copy: Copy, smaller: Copy, larger: Mask, hidden: float, wide: float) -> _Found | None:
    """The marks on a copy by what was seen of all of it.

    None unless so much of them is hidden on the ``larger`` copy, or their strokes are so mostly very wide.
    """
    coarse = _enlarged(smaller.seen[0], copy.canvas.shape[:2])
    everywhere = np.ones(coarse.shape, np.bool_)
    seen = copy.seen.copy()
    judged = _made_out(copy.canvas, seen, coarse, everywhere)
    verdict = scales.compare(judged.tight, seen[0], coarse, larger)
    if verdict.hidden <= hidden and verdict.very_wide <= wide:
        return None
    if verdict.others.any():
        seen = copy.seen.copy()
        seen[0][verdict.others] = 0
        judged = _made_out(copy.canvas, seen, coarse, everywhere)
    if not judged.regions:  # without the rest it is no mark by itself
        return None
    _complete(copy.canvas, seen, judged)
    return _Found(seen, *judged)


def _besides(canvas: Picture, found: _Found, half: Copy, wider: Mask) -> _Found:
    """What was found on a copy besides the marks that are taken off the smaller one."""
    taken = cv2.dilate(wider.view(np.uint8), np.ones((2 * MAX_JOINED_GAP_PX + 1,) * 2, np.uint8))
    size = found.tight.shape
    apart = cv2.resize(taken, size[::-1], interpolation=cv2.INTER_NEAREST) == 0
    coarse = _enlarged(half.seen[0], size)
    return _Found(found.seen, *judge(canvas, found.seen[0] * apart, coarse))


def _detected(found: _Found, step: int, height: int, width: int, finer: Detection | None) -> Detection | None:
    seen, tight = found.seen, found.tight
    if not found.regions:
        return None
    loose = loosened(tight)
    return Detection(
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
        found.certainty,
        repeated=found.repeated,
    )


def _nothing(height: int, width: int, step: int, size: tuple[int, ...]) -> Detection:
    empty = np.zeros(size, np.uint8)
    mask = empty.view(np.bool_)
    return Detection(height, width, step, mask, mask, empty, empty, np.zeros((*size, 3), np.uint8), empty, 0.0, ())


def _made_out(canvas: Picture, seen: Levels, coarse: Levels, looked: Mask, prior: float = 0.0) -> Judged:
    """The marks that the two looks make out. Of repeated ones all copies go into ``seen``."""
    lattice = repeats.find(seen[0])
    together = repeats.fold(seen, coarse, looked, lattice) if lattice else None
    if together is None:
        return judge(canvas, seen[0], coarse, prior=prior)
    copies = _copies(together.likely, together.coarse)
    # A mark may stand beside the repeated one.
    apart = cv2.dilate(copies.view(np.uint8), np.ones((2 * MAX_JOINED_GAP_PX + 1,) * 2, np.uint8)) == 0
    single = judge(canvas, seen[0] * apart, coarse, prior=prior)
    together.into(seen, kept=single.tight)
    np.copyto(together.coarse, coarse, where=single.tight)
    tight = copies | single.tight
    score = _score(seen[0][tight], together.coarse[tight])
    certainty = np.maximum(single.certainty, (255 * score * copies).astype(np.uint8))
    regions = [*_regions(copies, score), *single.regions]
    return Judged(sorted(regions, key=lambda r: (-r.score, r.top, r.left)), tight, certainty, score, True)


def _copies(likely: Levels, coarse: Levels) -> Mask:
    """The pixels of a repeated mark, by what all its copies say together."""
    above = likely >= _MIN_COPY_LEVELS
    near = cv2.dilate(above.view(np.uint8), np.ones((MAX_JOINED_GAP_PX, MAX_JOINED_GAP_PX), np.uint8))
    count, labels = cv2.connectedComponents(near, connectivity=8, ltype=cv2.CV_32S)
    label = labels[above]
    odds = np.bincount(label, ODDS[likely[above]] + _COARSE_ODDS_RATIO * ODDS[coarse[above]], count)
    good = odds >= _MIN_COPY_ODDS * np.maximum(np.bincount(label, minlength=count), 1)
    copies: Mask = above & good[labels]
    return copies


def _regions(tight: Mask, score: float) -> list[Region]:
    """One for each copy, or for those that touch."""
    near = cv2.dilate(tight.view(np.uint8), np.ones((MAX_JOINED_GAP_PX, MAX_JOINED_GAP_PX), np.uint8))
    count, labels, boxes, _ = cv2.connectedComponentsWithStats(near, connectivity=8, ltype=cv2.CV_32S)
    pixels = np.bincount(labels[tight], minlength=count)
    return [
        Region(left, top, width, height, round(score, 4), int(pixels[i]))
        for i, (left, top, width, height) in enumerate(boxes[:, :4].tolist())
        if i > 0
    ]


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
    worth = (coarse >= _MIN_FINE_LOOK_LEVELS).view(np.uint8)
    joined = cv2.dilate(worth, np.ones((MAX_JOINED_GAP_PX, MAX_JOINED_GAP_PX), np.uint8))
    _, labels, finds, _ = cv2.connectedComponentsWithStats(joined, connectivity=8, ltype=cv2.CV_32S)
    pixels = np.bincount(labels[worth.view(np.bool_)], minlength=len(finds))
    # Drawn with their surroundings, finds that share some become one.
    drawn = np.zeros((height, width), np.uint8)
    for left, top, wide, high, _ in finds[1:][pixels[1:] >= _MIN_FINE_LOOK_PIXELS]:
        drawn[
            max(0, top - _MARGIN_PX) : top + high + _MARGIN_PX, max(0, left - _MARGIN_PX) : left + wide + _MARGIN_PX
        ] = 1
    _, _, groups, _ = cv2.connectedComponentsWithStats(drawn, connectivity=4, ltype=cv2.CV_32S)
    tiles = [tile for left, top, wide, high, _ in groups[1:].tolist() for tile in cut_up(high, wide, top, left)]
    return [tile for tile in tiles if drawn[tile].any()]


def _score(fine: Levels, coarse: Levels) -> float:
    """Of a repeated mark."""
    if len(fine) == 0:
        return 0.0
    odds = _REPEATS_ODDS + _FINE_ODDS_COEFFICIENT * ODDS[fine].mean() + _COARSE_ODDS_COEFFICIENT * ODDS[coarse].mean()
    return 1 / (1 + math.exp(-(_SIZE_COEFFICIENT * math.log10(len(fine)) + float(odds) + _SCORE_OFFSET_ODDS)))


def _scaled(region: Region, step: int, height: int, width: int) -> Region:
    if step == 1:
        return region
    left, top = region.left * step, region.top * step
    right, bottom = min(width, left + region.width * step), min(height, top + region.height * step)
    return Region(left, top, right - left, bottom - top, region.score, region.pixels * step * step)

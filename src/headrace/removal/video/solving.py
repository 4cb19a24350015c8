"""What a mark in a clip is made of, and how it is best taken off: tried on the sampled frames first."""

from collections.abc import Callable
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.blocks import Block
from headrace.removal.images.eye.drafting import drafted
from headrace.removal.images.eye.model import Mask
from headrace.removal.images.views import detection
from headrace.removal.images.views.solving import Guess, Matte, solve
from headrace.removal.images.views.stack import persistent_steps
from headrace.removal.video.colours import planes_of
from headrace.removal.video.frame_removal import Eraser
from headrace.removal.video.planes import Layout
from headrace.removal.video.sampling import Box, Sample
from headrace.removal.video.static_marks import Found, varied

MIN_TELLING_BACKGROUNDS = 4  # different backgrounds from which on they tell what the mark is made of
_MAX_VIEWS = 72  # at most
_MAX_VIEW_BYTES, _MIN_KEPT_VIEWS = 150_000_000, 24  # their limit of memory, but never fewer views than this
_MAX_TRIED_SAMPLES = 24  # samples on which a way is tried
MAX_RESIDUE_RATIO = 0.25  # of the mark: what may be left
MIN_ALPHA = 0.05  # of alpha: less is nothing
MIN_PERSISTING_BACKGROUNDS = 8  # different backgrounds, from which on edges that stay are the mark's
_MIN_EDGE_LEVELS, _MIN_EDGE_RATIO = 2.5, 5.0  # levels a pixel; and how many times the usual step
_STROKE_PX, _MAX_PART_GAP_PX = 5, 13  # pixels: across a stroke; between parts of one mark
# Pairs of pixels: wider than strokes; and levels by which what is beside one changes
_STROKE_REACH_PX = 9
_MIN_CHANGE_LEVELS = 8.0
_NEARBY_PX = 65  # pixels: twice as far as a mark may go on unseen
_MIN_CONFIRMED_RATIO = 0.3  # of the strength that the eye sees: with less the frames tell nothing of it
# An outline that says something of the strength; and frames that have one
_MIN_TELLING_LEVELS = 1.0
_MIN_TELLING_FRAMES = 6
_MIN_FADE_RATIO, _MIN_LOCAL_FADE_RATIO = 0.5, 0.2  # how much weaker than at its strongest a mark is at times that fades
_MIN_STRONG_RATIO = 0.7  # of its strongest
# A matte is made stronger from here on, and not beyond this alpha
_MIN_CORRECTION_RATIO = 1.04
_MAX_CORRECTED_ALPHA = 0.97
_MIN_PRESENT_RATIO = 0.3  # of its usual strength: with less, a mark is not there
_MIN_FOLLOWED_RATIO = 0.9  # the same, of one that moves: true ones have 0.98 and more
_EDGE_BAND_PX, _BACKGROUND_MARGIN_PX = 5, 17  # pixels: of a mark with its edges; from which on there is nothing of it
# Levels a pixel that edges of a mark have; and what those around it may have of that
_MIN_CLEAR_EDGE_LEVELS = 3.0
_MAX_RESTLESS_RATIO = 0.5

# Of the steepest of a matte: its outline; ground around; pixels that tell
_MIN_RIM_RATIO = 0.4
_MAX_GROUND_RATIO = 0.02
_MIN_TELLING_PIXELS = 64
_MIN_CORE_RATIO = 0.4  # of the strongest that the eye sees: more is the mark
_MAX_SMOOTH_LEVELS = 3.0  # levels a pixel: what is rougher hides a trace
_MAX_INVISIBLE_LEVELS = 0.5  # levels a pixel: invisible if less steep


def matte_of(
    found: Found, samples: list[Sample], layout: Layout, allowed: Mask | None, heed: Callable[[], object]
) -> Matte | None:
    """What a mark is made of, by all samples that have it. None where nothing of it may be changed."""
    guess = detection.guess(found.looks, allowed, given=found.given)
    if not guess.tight.any():
        return None
    if found.backgrounds < MIN_TELLING_BACKGROUNDS:
        return _by_eye(found.pictures, found.looks, guess, layout)
    top, bottom, left, right = found.box
    most = int(np.clip(_MAX_VIEW_BYTES / (3 * (bottom - top) * (right - left)), _MIN_KEPT_VIEWS, _MAX_VIEWS))
    crops = [samples[number].crop(layout, found.box) for number in varied(found.which, most)]
    hue = guess.tint / np.maximum(guess.alpha, 0.02)[..., None]
    tint = planes_of(np.clip(hue, 0, 255), full=layout.full) * guess.alpha[..., None]
    light = (layout.black, layout.white)
    matte = solve(crops, Guess(guess.tight, guess.loose, guess.alpha, tint), light=light, heed=heed)
    if np.median(matte.alpha[guess.tight]) < _MIN_CONFIRMED_RATIO * np.median(guess.alpha[guess.tight]):
        # Of one that fades, pixels vary more over the frames than those beside it, not less: so the eye's word counts.
        alpha, tinted = (np.where(guess.loose, each, np.float32(0)) for each in (guess.alpha, np.moveaxis(tint, 2, 0)))
        return Matte(alpha, np.ascontiguousarray(np.moveaxis(tinted, 0, 2)), guess.loose, matte.trust)
    return matte


def strongest(found: Found) -> Mask:
    """The strongest detection in the user's box."""
    guess = detection.guess(found.looks)
    inside = np.zeros_like(guess.tight)
    top, bottom, left, right = found.inner
    inside[max(0, top - found.box[0]) : bottom - found.box[0], max(0, left - found.box[2]) : right - found.box[2]] = (
        True
    )
    seen = guess.tight & inside
    return (
        seen & (guess.alpha > _MIN_CORE_RATIO * float(np.quantile(guess.alpha[seen], 0.95)))
        if seen.any()
        else guess.tight
    )


def persisting(found: Found, samples: list[Sample], layout: Layout, known: Mask | None = None) -> Mask:
    """What the eye sees, and what has edges that stay over all pictures and lies with it: small letters, thin lines.

    ``known`` is what was taken for the mark before: far from it, what the eye sees is another thing.
    """
    tight = detection.guess(found.looks).tight
    if known is not None:
        near = cv2.dilate(known.view(np.uint8), np.ones((_NEARBY_PX, _NEARBY_PX), np.uint8)).view(np.bool_)
        tight = known | (tight & near)
    return tight | stays_with(tight, found, samples, layout)


def stays_with(mask: Mask, found: Found, samples: list[Sample], layout: Layout) -> Mask:
    """What has edges that stay over all pictures, in and around a mask of the box; nothing where they are few."""
    if found.backgrounds < MIN_PERSISTING_BACKGROUNDS or not mask.any():
        return np.zeros_like(mask)
    views = [samples[number] for number in varied(found.which, _MAX_VIEWS)]
    edges = _edges(views, layout, found.box)
    strong = (edges > max(_MIN_EDGE_LEVELS, _MIN_EDGE_RATIO * float(np.median(edges)))) & _restless(
        views, layout, found.box
    )
    whole = cv2.morphologyEx(strong.view(np.uint8), cv2.MORPH_CLOSE, np.ones((_STROKE_PX, _STROKE_PX), np.uint8))
    whole = _without_lines(whole.astype(np.uint8))
    joined = cv2.dilate(whole | mask.view(np.uint8), np.ones((_MAX_PART_GAP_PX, _MAX_PART_GAP_PX), np.uint8))
    _, labels = cv2.connectedComponents(joined, connectivity=8, ltype=cv2.CV_32S)
    mine = np.isin(labels, np.unique(labels[mask])) & (labels > 0)
    found_there: Mask = whole.view(np.bool_) & mine
    return found_there


def _edges(samples: list[Sample], layout: Layout, box: Box) -> NDArray[np.float32]:
    """How steep, in levels a pixel, what stays the same in all of them is."""
    right, down = persistent_steps([each.crop(layout, box)[..., :1].copy() for each in samples])
    steep: NDArray[np.float32] = np.hypot(right, down)[..., 0]
    return steep


def _restless(samples: list[Sample], layout: Layout, box: Box) -> Mask:
    """Where the picture changes, by half of the frames: what a camera at rest sees stays as well, and is no mark."""
    top, bottom, left, right = box
    few = samples[:: max(1, len(samples) // _MAX_TRIED_SAMPLES)]
    stack = np.stack([each.planes[0][top:bottom:2, left:right:2] >> layout.shift for each in few])
    low, high = len(few) // 4, len(few) - 1 - len(few) // 4
    ordered = np.partition(stack, (low, high), axis=0)
    spread = (ordered[high] - ordered[low]).astype(np.float32)
    near = cv2.dilate(spread, np.ones((_STROKE_REACH_PX, _STROKE_REACH_PX), np.uint8))
    return cv2.resize(near, (right - left, bottom - top), interpolation=cv2.INTER_NEAREST) > _MIN_CHANGE_LEVELS


def _without_lines(edges: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Without what runs from one side to the other: the rim of a picture with bars beside it, not of a mark."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(edges, connectivity=8)
    height, width = edges.shape
    lines = [each for each in range(1, count) if stats[each][2] == width or stats[each][3] == height]
    edges[np.isin(labels, lines)] = 0
    return edges


def lasting(before: list[Sample], after: list[Sample], layouts: tuple[Layout, Layout], box: Box, loose: Mask) -> float:
    """How much of the edges that the mark has in all frames they still have afterwards, whichever way: 1 is all.

    What is taken off too much leaves an outline, too, which no likeness with the mark's own tells. Nothing is known
    where the picture around has such edges itself.
    """
    zone, near = (
        cv2.dilate(loose.view(np.uint8), np.ones((size, size), np.uint8)).view(np.bool_)
        for size in (_EDGE_BAND_PX, _BACKGROUND_MARGIN_PX)
    )
    if near.all():
        return 0.0
    powers = []
    for samples, layout in zip((before, after), layouts, strict=True):
        edges = _edges(samples, layout, box) ** 2
        powers.append((float(edges[zone].mean()), float(edges[~near].mean())))
    (was, around), (now, still) = powers
    if was < _MIN_CLEAR_EDGE_LEVELS**2 or around > _MAX_RESTLESS_RATIO**2 * was:
        return 0.0
    return float(np.sqrt(max(0.0, now - still) / (was - around)))


def embossed(samples: list[Sample], layout: Layout, box: Box, matte: Matte) -> float:
    """How much steeper frames are along the mark's edges than right beside them: 1 is as steep, without a trace of it.

    Where the picture stands still, what computing leaves is faint beside the mark and yet read with ease, if what lies
    around is smooth. By the median: an edge of the picture crosses the mark's in a few places alone.
    """
    top, bottom, left, right = box
    power = np.zeros(matte.alpha.shape, np.float32)
    for each in samples:
        bright = (each.planes[0][top:bottom, left:right] >> layout.shift).astype(np.float32)
        power += sum(cv2.Sobel(bright, cv2.CV_32F, *way, scale=0.125) ** 2 for way in ((1, 0), (0, 1)))
    steep = np.sqrt(power / len(samples))
    edge = np.hypot(*(cv2.Sobel(matte.alpha, cv2.CV_32F, *way, scale=0.125) for way in ((1, 0), (0, 1))))
    outline = edge > _MIN_RIM_RATIO * float(edge.max())
    beside = ~cv2.dilate(matte.loose.view(np.uint8), np.ones((_EDGE_BAND_PX, _EDGE_BAND_PX), np.uint8)).view(np.bool_)
    known = cv2.blur(beside.astype(np.float32), (_BACKGROUND_MARGIN_PX, _BACKGROUND_MARGIN_PX))
    usual = cv2.blur(steep * beside, (_BACKGROUND_MARGIN_PX, _BACKGROUND_MARGIN_PX)) / np.maximum(
        known, np.float32(1e-6)
    )
    counted = outline & (known > _MAX_GROUND_RATIO) & (usual < _MAX_SMOOTH_LEVELS)
    if counted.sum() < _MIN_TELLING_PIXELS:
        return 1.0
    return float(np.median((steep[counted] + _MAX_INVISIBLE_LEVELS) / (usual[counted] + _MAX_INVISIBLE_LEVELS)))


def _by_eye(pictures: list[NDArray[np.uint8]], looks: list[detection.Look], guess: Guess, layout: Layout) -> Matte:
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


def levelled(
    samples: list[Sample], found: Found, matte: Matte, layout: Layout, allowed: Mask | None, heed: Callable[[], object]
) -> tuple[Matte, bool]:
    """The matte as strong as the mark is where it is all there, and whether its strength changes.

    Solved over frames in which it is weaker, or over some that lack it, a mark seems weaker than it is.
    """
    values = _strengths(samples, found, matte, layout)
    if np.isfinite(values).sum() < _MIN_TELLING_FRAMES:
        return matte, False
    low, high = np.nanquantile(values, (0.2, 0.85))
    # Over different pictures the outline is measured more or less well; over a still one only the mark changes.
    least = _MIN_FADE_RATIO if found.backgrounds > 1 else _MIN_LOCAL_FADE_RATIO
    fades = bool(high - low > least * high and high > 0)
    if fades:
        strong = replace(found, which=np.where(values >= _MIN_STRONG_RATIO * high, found.which, -1))
        matte = matte_of(strong, samples, layout, allowed, heed) or matte
        values = _strengths(samples, strong, matte, layout)
    strength = float(np.nanmedian(values))
    gain = (
        min(strength, _MAX_CORRECTED_ALPHA / max(float(matte.alpha.max()), 0.02))
        if strength > _MIN_CORRECTION_RATIO
        else 1.0
    )
    if gain <= 1:
        return matte, fades
    return Matte(matte.alpha * np.float32(gain), matte.tint * np.float32(gain), matte.loose, matte.trust), fades


def _strengths(samples: list[Sample], found: Found, matte: Matte, layout: Layout) -> NDArray[np.float64]:
    """In each sample that has the mark and shows its outline; not a number in others."""
    eraser = Eraser(found.box, matte, layout)
    values = np.full(len(samples), np.nan)
    for number in np.flatnonzero(found.which >= 0):
        value, weight = eraser.measure(samples[number].planes[0])
        if weight > _MIN_TELLING_LEVELS:
            values[number] = value
    return values


def stands_out(samples: list[Sample], which: NDArray[np.intp], eraser: Eraser, *, moves: bool = False) -> bool:
    """Whether the frames have the mark's outline: what they do not show could not be shown to have gone, either.

    What was followed by its outline must have it all the more: things that look alike from place to place are no mark.
    """
    least = _MIN_FOLLOWED_RATIO if moves else _MIN_PRESENT_RATIO
    measured = [eraser.measure(samples[number].planes[0]) for number in varied(which, _MAX_TRIED_SAMPLES)]
    return sum(weight * strength for strength, weight in measured) > least * sum(weight for _, weight in measured)


def residue_of(samples: list[Sample], which: NDArray[np.intp], eraser: Eraser, *, fades: bool = False) -> float:
    """How much of the mark a way of taking it off leaves in the samples: 1 is all of it, 0 nothing.

    By the outline, over many frames together: what the eye sees in single ones is what compression left of the mark's
    edges, and it sees that with the true strength and colour, too.
    """
    before = after = 0.0
    for number in varied(which, _MAX_TRIED_SAMPLES):
        planes = [plane.copy() for plane in samples[number].planes]
        strength, weight = eraser.measure(planes[0])
        eraser.erase(planes, min(max(strength, 0.0), 1.0) if fades else 1.0)
        left, _ = eraser.measure(planes[0])
        before += weight * strength
        after += weight * left
    return abs(after) / max(before, 1e-6)


def way_of(
    samples: list[Sample], which: NDArray[np.intp], layout: Layout, box: Box, matte: Matte, *, backgrounds: int,
    fades: bool, filled: bool, heed: Callable[[], object],
) -> tuple[Eraser, float]:  # fmt: skip
    """The first way that leaves little of the mark, or the one that leaves least; and how much it leaves.

    ``filled`` leaves no choice but to fill in.
    """
    tried: list[tuple[float, Eraser, float]] = []
    for invent in (True,) if filled else (False, True):
        heed()
        eraser = Eraser(box, matte, layout, invent=invent)
        residue = residue_of(samples, which, eraser, fades=fades)
        outlined = (
            0.0
            if backgrounds < MIN_PERSISTING_BACKGROUNDS or fades
            else _outlined(samples, which, layout, eraser, matte)
        )
        tried.append((max(residue, outlined), eraser, residue))
        if tried[-1][0] <= MAX_RESIDUE_RATIO:
            break
    _, eraser, residue = min(tried, key=lambda each: each[0])
    return eraser, residue


def _outlined(samples: list[Sample], which: NDArray[np.intp], layout: Layout, eraser: Eraser, matte: Matte) -> float:
    """How much of the mark's edges a way of taking it off leaves in the samples."""
    before = [samples[number] for number in varied(which, _MAX_TRIED_SAMPLES)]
    after = [replace(each, planes=[plane.copy() for plane in each.planes]) for each in before]
    for each in after:
        eraser.erase(each.planes)
    return lasting(before, after, (layout, layout), eraser.box, matte.loose)

"""Whether what was seen is a mark: by words and emblems as a whole, not by single letters.

Weights of a logistic regression, fitted to 312 marked pictures and 433 others (photographs, façades, street signs,
maps, charts, screens, receipts) that neither training nor the benchmarks use: docs/why/eye-model-card.md.
"""

from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye import ground
from headrace.removal.images.eye.model import MAX_JOINED_GAP_PX, Levels, Mask, Picture, Region
from headrace.removal.images.eye.repeats import ODDS

# On the probability, in 255ths: where a mark begins, and what it surely holds.
_MIN_MARK_LEVELS, _MIN_SURE_LEVELS = 60, 200
_MIN_PART_PIXELS, _MIN_PART_ODDS = 12, -0.2  # pixels of a part that counts, and the mean of their odds
MAX_COMPONENTS = 400  # the largest are scored; more components are no watermark
_MAX_GAP_RATIO, _MIN_PART_SIDE_PX = 0.8, 12  # parts no further apart than so much of their shorter side belong together
MIN_SHOWN_SCORE = 0.2  # regions of less are not listed
# Of a group: its size (logarithm of pixels), the mean of its odds by the fine and the coarse look, the share that is
# strong, how far from a corner it is (shares of the picture), in how many parts it comes, the odds that a tenth of it
# exceeds, how many other parts there are (a page is full of them), its size as a share of the picture's (logarithm),
# and what it lies on: whether on a board of its own, and how much it differs.
_WEIGHTS = np.array([0.804, 0.475, 0.335, -0.935, -4.77, -1.897, 0.77, -1.304, 1.173, -6.128, -4.816])
_MAX_FITTED_PIXELS = 1_200_000  # pixels of the pictures that it was fitted to; in larger ones a mark is not less likely
# With this offset, one picture in twenty that carries no mark is changed: of 326 that taught the detector nothing.
_SCORE_OFFSET_ODDS = -4.1


class Judged(NamedTuple):
    regions: list[Region]  # the likeliest first
    tight: Mask
    certainty: Levels  # how likely a pixel's group is a mark, in 255ths
    score: float  # of the likeliest
    repeated: bool = False  # whether copies of it lie on a lattice


class _Parts(NamedTuple):
    """Pixels that hang together, and sums over each of them; the first is the ground."""

    boxes: NDArray[np.number[Any]]  # left, top, width, height
    at: NDArray[np.intp]  # the pixels that count
    label: NDArray[np.number[Any]]  # of each
    chance: Levels  # of each
    pixels: NDArray[np.number[Any]]
    fine: NDArray[np.number[Any]]
    coarse: NDArray[np.number[Any]]
    strong: NDArray[np.number[Any]]


def judge(
    picture: Picture, likely: Levels, coarse: Levels, *, least: float = MIN_SHOWN_SCORE, prior: float = 0.0
) -> Judged:
    """The groups that are marks with a probability of ``least``, given odds (their logarithm) of ``prior`` for all."""
    parts = _parts(likely, coarse)
    occupied = ground.occupied(likely)
    tight, certainty = np.zeros(likely.shape, np.bool_), np.zeros(likely.shape, np.uint8)
    chances = np.zeros(len(parts.pixels))
    regions = []
    for group in _groups(parts):
        beneath = ground.beneath(picture, occupied, _around(parts, group))
        features = np.append(_features(parts, group, likely.shape), beneath)
        chance = 1 / (1 + np.exp(-(features @ _WEIGHTS + _SCORE_OFFSET_ODDS + prior)))
        if chance >= least:
            chances[group] = chance
            regions.append(_region(parts, group, float(chance)))
    chance_at = chances[parts.label]
    found = chance_at > 0
    tight.ravel()[parts.at[found]] = True
    certainty.ravel()[parts.at[found]] = np.rint(255 * chance_at[found]).astype(np.uint8)
    regions.sort(key=lambda region: (-region.score, region.top, region.left))
    return Judged(regions, tight, certainty, regions[0].score if regions else 0.0)


def _parts(likely: Levels, coarse: Levels) -> _Parts:
    above = (likely >= _MIN_MARK_LEVELS).view(np.uint8)
    near = cv2.dilate(above, np.ones((MAX_JOINED_GAP_PX, MAX_JOINED_GAP_PX), np.uint8))
    count, labels, boxes, _ = cv2.connectedComponentsWithStats(near, connectivity=8, ltype=cv2.CV_32S)
    # Only of the pixels that count: a picture of many megapixels is mostly unmarked.
    at = np.flatnonzero(above)
    label, chance = labels.ravel()[at], likely.ravel()[at]
    return _Parts(
        boxes[:, :4],
        at,
        label,
        chance,
        np.bincount(label, minlength=count),
        np.bincount(label, ODDS[chance], count),
        np.bincount(label, ODDS[coarse.ravel()[at]], count),
        np.bincount(label[chance >= _MIN_SURE_LEVELS], minlength=count),
    )


def _groups(parts: _Parts) -> list[NDArray[np.intp]]:
    """Parts that lie near together, as letters of a word do."""
    counts = (parts.pixels >= _MIN_PART_PIXELS) & (parts.fine >= _MIN_PART_ODDS * parts.pixels)
    counts[0] = False
    chosen = np.flatnonzero(counts)
    chosen = chosen[np.argsort(-parts.pixels[chosen], kind="stable")][:MAX_COMPONENTS]
    if len(chosen) == 0:
        return []
    left, top, width, height = parts.boxes[chosen].T.astype(np.float64)
    short = np.maximum(np.minimum(width, height), _MIN_PART_SIDE_PX)
    apart = np.maximum(*(
        np.maximum(start[:, None] - (start + length)[None], start[None] - (start + length)[:, None])
        for start, length in ((left, width), (top, height))
    ))  # fmt: skip
    linked = apart <= _MAX_GAP_RATIO * np.minimum(short[:, None], short[None])
    group = np.arange(len(chosen))
    while True:  # each takes the lowest number that it touches, until nothing changes
        lowest = np.where(linked, group[None], len(chosen)).min(1)
        if (lowest == group).all():
            return [chosen[group == number] for number in np.unique(group)]
        group = lowest


def _features(parts: _Parts, group: NDArray[np.intp], size: tuple[int, ...]) -> NDArray[np.float64]:
    pixels = parts.pixels[group].sum()
    left, top, right, bottom = _around(parts, group)
    aside, above = min(left, size[1] - right) / size[1], min(top, size[0] - bottom) / size[0]
    others = ((parts.pixels[1:] >= _MIN_PART_PIXELS).sum()) - len(group)
    chance = parts.chance[np.isin(parts.label, group)]
    return np.array([
        np.log10(pixels),
        parts.fine[group].sum() / pixels,
        parts.coarse[group].sum() / pixels,
        parts.strong[group].sum() / pixels,
        min(np.hypot(aside, above), 0.5),
        np.log10(len(group)),
        ODDS[int(np.percentile(chance, 90))],
        np.log10(1 + max(0, others)),
        np.log10(pixels / min(size[0] * size[1], _MAX_FITTED_PIXELS)),
    ])  # fmt: skip


def _around(parts: _Parts, group: NDArray[np.intp]) -> tuple[int, int, int, int]:
    left, top, width, height = parts.boxes[group].T
    return int(left.min()), int(top.min()), int((left + width).max()), int((top + height).max())


def _region(parts: _Parts, group: NDArray[np.intp], chance: float) -> Region:
    left, top, right, bottom = _around(parts, group)
    return Region(left, top, right - left, bottom - top, round(chance, 4), int(parts.pixels[group].sum()))

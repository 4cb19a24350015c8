"""What the eye sees in many views of one place, taken together: its errors differ from view to view, a mark stays."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import cv2
import numpy as np

from headrace.removal.images.eye import plates
from headrace.removal.images.eye.inference import Detector, cut_up
from headrace.removal.images.eye.model import Levels, Mask, Picture, Plane, Region, loosened
from headrace.removal.images.eye.plates import Box
from headrace.removal.images.eye.repeats import ODDS
from headrace.removal.images.eye.residue import boxes_around
from headrace.removal.images.views.solving import Guess

MAX_LOOKS = 8  # at most, of all views
_JPEG_QUALITY_PERCENT = 90  # of the file as which a result is looked at
_MIN_MEAN_ODDS = 0.0  # the mean of odds from which on a pixel belongs to the mark
_FULL_CONTRAST_LEVELS = 40.0  # between ink and ground: from here on a view says all about a pixel
_MIN_WEIGHT_RATIO = 0.02  # of a view whose ground has the ink's colour
# Of an ink, as the network estimates it, which is white or black: it estimates both too grey.
_MIN_WHITE_LEVEL, _MAX_BLACK_LEVEL = 150, 80
_GROUND_PX = 9  # the side of the square whose mean colour is a pixel's ground


@dataclass(frozen=True, slots=True)
class Look:
    """One view, looked at."""

    seen: Levels  # PLANES H W
    weight: Plane | None = None  # H W: how much the view tells of each pixel; None for all alike

    @property
    def odds(self) -> Plane:
        odds: Plane = ODDS[self.seen[0]].astype(np.float32)
        return odds

    def within(self, rows: slice, columns: slice) -> "Look":
        weight = None if self.weight is None else np.ascontiguousarray(self.weight[rows, columns])
        return Look(np.ascontiguousarray(self.seen[:, rows, columns]), weight)


def look(view: Picture, *, threads: int, heed: Callable[[], object] = lambda: None) -> Look:
    """All of one view, once, at the size it has. ``heed`` is called before each tile, and may raise to end it."""
    planes, _ = Detector(threads, frugal=False, heed=heed).fine(view, cut_up(*view.shape[:2]))
    return Look(planes)


def still_seen(before: list[Look], results: list[Picture], loose: Mask, *, threads: int) -> float:
    """What the eye sees of a mark in all results together, as a share of what it saw of it before.

    What is left of a mark is at one place in all of them. In a single result it cannot be separated from false
    alarms of the network; and the mark's own outline says nothing of what was never taken for a part of it.
    """
    boxes = boxes_around(loose)
    eye = Detector(threads, frugal=False)
    after = [Look(eye.fine(_filed(result), boxes)[0]) for result in results]
    first, now = (float(likely(looks)[loose].sum(dtype=np.float64)) for looks in (before, after))
    return min(1.0, now / max(first, 1.0))


def _filed(picture: Picture) -> Picture:
    """As a JPEG smears it: what shines through was amplified, and the network alone takes its grain for the mark."""
    _, encoded = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY_PERCENT])
    decoded = cv2.imdecode(encoded, cv2.IMREAD_COLOR)
    assert decoded is not None
    return cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB).astype(np.uint8, copy=False)


def spread(count: int, most: int = MAX_LOOKS) -> list[int]:
    """Numbers of views from all over."""
    if count <= most:
        return list(range(count))
    return sorted({round(number * (count - 1) / (most - 1)) for number in range(most)})


def weighed(looks: list[Look], views: list[Picture]) -> list[Look]:
    """The looks with weights: white letters on a white sky are invisible, so such a view does not deny them."""
    tight = _mean([each.odds for each in looks], looks) > _MIN_MEAN_ODDS
    if not tight.any():
        return looks
    alpha = np.mean([each.seen[1][tight].astype(np.float32) for each in looks], 0) / np.float32(255)
    tint = np.mean([each.seen[2:5][:, tight].astype(np.float32) for each in looks], 0)
    ink = np.median(tint / np.maximum(alpha, np.float32(0.02)), 1).clip(0, 255)
    ink = np.where(ink.min() > _MIN_WHITE_LEVEL, 255, np.where(ink.max() < _MAX_BLACK_LEVEL, 0, ink))
    weighted = []
    for each, view in zip(looks, views, strict=True):
        ground = cv2.blur(view.astype(np.float32), (_GROUND_PX, _GROUND_PX))
        contrast = np.abs(ground - ink.astype(np.float32)).max(2) / np.float32(_FULL_CONTRAST_LEVELS)
        weighted.append(replace(each, weight=np.square(contrast).clip(_MIN_WEIGHT_RATIO, 1).astype(np.float32)))
    return weighted


def _mean(planes: list[Plane], looks: list[Look]) -> Plane:
    """The mean over the looks, by their weights."""
    weights = [each.weight for each in looks if each.weight is not None]
    if len(weights) < len(looks):
        return np.mean(planes, 0)  # type: ignore[no-any-return]
    total = np.sum(weights, 0)
    summed = np.sum([plane * weight for plane, weight in zip(planes, weights, strict=True)], 0)
    return np.asarray(summed / total, np.float32)


def likely(looks: list[Look]) -> Levels:
    """The probability of each pixel by all looks together, in 255ths."""
    odds = _mean([each.odds for each in looks], looks)
    levels: Levels = np.rint(255 / (1 + np.exp(-odds))).astype(np.uint8)
    return levels


def guess(looks: list[Look], allowed: Mask | None = None, *, given: Mask | None = None) -> Guess:
    """Where the mark is and what it is made of, by the mean over the looks; ``given`` is where the user drew it."""
    odds = _mean([each.odds for each in looks], looks)
    tight = odds > _MIN_MEAN_ODDS if given is None else given
    if allowed is not None:
        tight = tight & allowed
    alpha: Plane = _mean([each.seen[1].astype(np.float32) for each in looks], looks) / np.float32(255)
    tint = np.stack([_mean([each.seen[plane].astype(np.float32) for each in looks], looks) for plane in (2, 3, 4)], 2)
    loose = loosened(tight)
    return Guess(tight, loose if allowed is None else loose & allowed, alpha, tint)


def with_plates(
    guess: Guess, mean: Picture, regions: Iterable[Region], allowed: Mask | None = None
) -> tuple[Guess, list[Box]]:
    """With what the eye overlooked of bands and plates, up to the sides that the ``mean`` of the views shows."""
    tight = guess.tight.copy()
    planes = np.concatenate([guess.alpha[None] * 255, np.moveaxis(guess.tint, 2, 0)])
    seen: Levels = np.rint(planes).astype(np.uint8)
    found = plates.complete(mean, seen, tight, regions)
    if allowed is not None:
        tight &= allowed
    more = tight & ~guess.tight
    alpha, tint = guess.alpha.copy(), guess.tint.copy()
    alpha[more] = seen[0][more] / np.float32(255)
    tint[more] = seen[1:][:, more].T
    loose = loosened(tight)
    return Guess(tight, loose if allowed is None else loose & allowed, alpha, tint), found

"""What the eye sees in many views of one place, taken together: its errors differ from view to view, a mark stays."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Look:
    """One view, looked at."""

    seen: Levels  # PLANES H W

    @property
    def odds(self) -> Plane:
        odds: Plane = ODDS[self.seen[0]].astype(np.float32)
        return odds


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


def likely(looks: list[Look]) -> Levels:
    """The probability of each pixel by all looks together, in 255ths."""
    odds = np.mean([each.odds for each in looks], 0)
    levels: Levels = np.rint(255 / (1 + np.exp(-odds))).astype(np.uint8)
    return levels


def guess(looks: list[Look], allowed: Mask | None = None, *, given: Mask | None = None) -> Guess:
    """Where the mark is and what it is made of, by the mean over the looks; ``given`` is where the user drew it."""
    odds = np.mean([each.odds for each in looks], 0)
    tight = odds > _MIN_MEAN_ODDS if given is None else given
    if allowed is not None:
        tight = tight & allowed
    alpha: Plane = np.stack([each.seen[1] for each in looks]).mean(0, dtype=np.float32) / np.float32(255)
    tint: Plane = np.stack([np.moveaxis(each.seen[2:5], 0, 2) for each in looks]).mean(0, dtype=np.float32)
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

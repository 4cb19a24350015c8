"""What the eye sees in many views of one place, taken together: its errors differ from view to view, a mark stays."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headrace.removal.eye.model import Levels, Mask, Picture, Plane, loosened
from headrace.removal.eye.repeats import ODDS
from headrace.removal.eye.tiles import Detector, cut_up
from headrace.removal.views.solving import Guess

LOOKS = 8  # views that are looked at, at the most
_EVEN = 0.0  # the mean of odds from which on a pixel belongs to the mark


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


def spread(count: int, most: int = LOOKS) -> list[int]:
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
    """Where the mark is and what it is made of, by the mean over the looks; ``given`` is where somebody drew it."""
    odds = np.mean([each.odds for each in looks], 0)
    tight = odds > _EVEN if given is None else given
    if allowed is not None:
        tight = tight & allowed
    alpha: Plane = np.stack([each.seen[1] for each in looks]).mean(0, dtype=np.float32) / np.float32(255)
    tint: Plane = np.stack([np.moveaxis(each.seen[2:5], 0, 2) for each in looks]).mean(0, dtype=np.float32)
    loose = loosened(tight)
    return Guess(tight, loose if allowed is None else loose & allowed, alpha, tint)

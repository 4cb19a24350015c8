"""What shows through a mark is the picture, and stays."""

import cv2
import numpy as np

from headrace.removal.eye import solve
from headrace.removal.eye.model import Mask, Picture, Region, Restoration, Sight, loosened

_HOLE = np.s_[50:70, 50:70]


def solved(picture: Picture, tight: Mask) -> Restoration:
    """With planes as of an eye that took the whole disc for white ink of a half."""
    levels = np.where(tight, np.uint8(127), np.uint8(0))
    tint = np.repeat(levels[..., None], 3, 2)
    seen = np.where(tight, np.uint8(255), np.uint8(0))
    height, width = tight.shape
    whole = Region(0, 0, width, height, 1.0, int(tight.sum()))
    empty = np.zeros_like(seen)
    return solve(picture, Sight(height, width, 1, tight, loosened(tight), seen, levels, tint, empty, 1.0, (whole,)))


def disc() -> Mask:
    drawn = np.zeros((120, 120), np.uint8)
    cv2.circle(drawn, (60, 60), 36, (1,), -1)
    return drawn.view(np.bool_)


def test_a_window_in_a_mark_stays_as_it_is() -> None:
    clean = np.random.default_rng(3).integers(84, 97, (120, 120, 3)).astype(np.uint8)
    covered = disc()
    covered[_HOLE] = False
    marked = clean.copy()
    marked[covered] = (clean[covered].astype(int) + 255) // 2
    result = solved(marked, disc())
    untouched = loosened(disc()).sum() - result.inverted - result.filled
    assert untouched > 150, "most of the window, but for its rim"
    assert np.abs(result.picture[covered].astype(int) - clean[covered]).mean() < 5


def test_a_mark_without_windows_is_solved_all_over() -> None:
    clean = np.full((120, 120, 3), 90, np.uint8)
    marked = clean.copy()
    marked[disc()] = (90 + 255) // 2
    result = solved(marked, disc())
    assert result.inverted + result.filled == loosened(disc()).sum()

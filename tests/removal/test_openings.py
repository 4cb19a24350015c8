"""What shows through a mark is the picture, and stays."""

import cv2
import numpy as np
import pytest

from headrace.removal.images.eye.model import Detection, Mask, Picture, Plane, Region, Restoration, loosened
from headrace.removal.images.eye.solving import solve

_HOLE = np.s_[50:70, 50:70]


def solved(picture: Picture, tight: Mask, alpha: float | Plane = 0.5, doubt: int = 0) -> Restoration:
    """With planes as of an eye that took all of it for white ink."""
    levels = np.where(tight, 255 * np.asarray(alpha), 0).astype(np.uint8)
    tint = np.repeat(levels[..., None], 3, 2)
    seen = np.where(tight, np.uint8(255), np.uint8(0))
    height, width = tight.shape
    whole = Region(0, 0, width, height, 1.0, int(tight.sum()))
    unsure = np.full_like(seen, doubt)
    return solve(
        picture,
        Detection(height, width, 1, tight, loosened(tight), seen, levels, tint, unsure, 1.0, (whole,), confirmed=True),
    )


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


def waves() -> Picture:
    rows, columns = np.mgrid[:120, :120]
    grain = np.random.default_rng(3).normal(0, 6, (120, 120))
    grey = np.clip(90 + 35 * np.sin(columns / 7) + 25 * np.cos(rows / 5) + grain, 0, 255)
    picture: Picture = grey.astype(np.uint8)[..., None].repeat(3, 2)
    return picture


@pytest.mark.parametrize("doubt", [0, 30])
def test_ink_is_not_bare_whatever_the_hand_says(doubt: int) -> None:
    marked = waves()
    marked[disc()] = 255
    assert solved(marked, disc(), 1.0, doubt).picture[disc()].min(1).max() < 240


def test_narrow_letters_cut_out_of_an_opaque_logo_stay() -> None:
    clean = waves()
    letters = np.zeros((120, 120), np.uint8)
    cv2.putText(letters, "TG", (36, 74), cv2.FONT_HERSHEY_SIMPLEX, 1.3, (1,), 4)
    covered = disc() & ~letters.view(np.bool_)
    marked = clean.copy()
    marked[covered] = 255
    faint = np.where(letters, np.float32(0.1), np.float32(1))
    result = solved(marked, disc(), faint, doubt=80).picture
    wrong = np.abs(result.astype(int) - clean).mean(2)
    assert wrong[letters > 0].mean() < 15
    assert wrong[covered].mean() < 19, "the ink is gone, and the letters told of what was under it"


def test_a_mark_without_windows_is_solved_all_over() -> None:
    clean = np.random.default_rng(3).integers(84, 97, (120, 120, 3)).astype(np.uint8)
    marked = clean.copy()
    marked[disc()] = (clean[disc()].astype(int) + 255) // 2
    result = solved(marked, disc())
    assert result.inverted + result.filled == loosened(disc()).sum()


def test_faint_ink_is_no_window() -> None:
    """What the ink changes less than filling in may miss could be either: it is solved."""
    clean = np.random.default_rng(3).integers(30, 151, (120, 120, 3)).astype(np.uint8)
    marked = clean.copy()
    marked[disc()] = np.rint(0.95 * clean[disc()] + 0.05 * 255).astype(np.uint8)
    result = solved(marked, disc(), alpha=0.05)
    assert result.refused or result.inverted + result.filled == loosened(disc()).sum()


@pytest.mark.long
def test_deep_inside_a_wide_mark_the_picture_is_computed() -> None:
    """Further in than any unmarked pixel is looked for, filling in must not be taken for exact."""
    rows, columns = np.mgrid[:700, :700]
    clean = (120 + 40 * np.sin(rows / 9) * np.cos(columns / 13)).astype(np.uint8)[..., None].repeat(3, 2)
    tight = np.zeros((700, 700), np.bool_)
    tight[100:600, 100:600] = True
    marked = clean.copy()
    marked[tight] = (clean[tight].astype(int) + 255) // 2
    result = solved(marked, tight).picture
    assert np.abs(result[280:420, 280:420].astype(int) - clean[280:420, 280:420]).mean() < 8

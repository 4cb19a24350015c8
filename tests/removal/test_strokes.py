"""In a box that somebody drew: what the eye overlooked of a mark is told by how it differs from its ground."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.removal.images.eye import strokes
from headrace.removal.images.eye.model import UNKNOWN_ERROR_LEVELS

Picture = NDArray[np.uint8]
BOX = np.s_[60:120, 40:300]


def ground(grain: float) -> Picture:
    rng = np.random.default_rng(5)
    slope = np.linspace(60, 130, 360, dtype=np.float32)[None, :, None] * np.ones((180, 1, 3), np.float32)
    return np.clip(slope + rng.normal(0, grain, slope.shape), 0, 255).astype(np.uint8)


def written(picture: Picture, at: tuple[int, int] = (55, 105)) -> tuple[Picture, NDArray[np.bool_]]:
    """The picture with a word over it, and where that is."""
    marked = picture.copy()
    cv2.putText(marked, "kelp & co", at, cv2.FONT_HERSHEY_DUPLEX, 1.3, (235, 180, 40), 3, cv2.LINE_AA)
    return marked, np.abs(marked.astype(int) - picture).max(2) > 40


def claimed(picture: Picture, tight: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    seen = np.zeros((6, *tight.shape), np.uint8)
    allowed = np.zeros_like(tight)
    allowed[BOX] = True
    return strokes.claim(picture, seen, tight, allowed), seen


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_strokes_that_were_overlooked_are_claimed_and_filled_in(share: float) -> None:
    marked, word = written(ground(3))
    tight = word & (np.arange(word.shape[1]) < share * word.shape[1])
    found, seen = claimed(marked, tight)
    assert (tight & word).sum() > 0.97 * word.sum()
    assert not found[:60].any()
    assert (
        found & ~cv2.dilate(word.view(np.uint8), np.ones((9, 9), np.uint8)).view(np.bool_)
    ).sum() < 0.02 * word.sum()
    assert (seen[5][found] == UNKNOWN_ERROR_LEVELS).all()  # nothing is known of its strength


def test_a_box_without_anything_of_its_own_stays() -> None:
    nothing = np.zeros((180, 360), np.bool_)
    assert not claimed(ground(3), nothing.copy())[0].any()
    # What stands out inside as it does around is the picture's own.
    busy, _ = written(ground(3), (55, 50))
    for down in (105, 160):
        busy, _ = written(busy, (55, down))
    assert not claimed(busy, nothing.copy())[0].any()

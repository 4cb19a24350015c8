"""What is left of a mark, by eyes that know what lies around it."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.removal.images.outline import seen_on_flat

Mask = NDArray[np.bool_]


@pytest.fixture
def word() -> tuple[Mask, Mask]:
    """A word's strokes, and what may be changed around them."""
    strokes = np.zeros((120, 240), np.uint8)
    cv2.putText(strokes, "gifs", (50, 75), cv2.FONT_HERSHEY_SIMPLEX, 1.6, 255, 5)
    return strokes > 0, cv2.dilate(strokes, np.ones((7, 7), np.uint8)) > 0


def test_a_faint_word_on_flat_ground_is_seen(word: tuple[Mask, Mask]) -> None:  # W-07
    tight, loose = word
    picture = np.full((120, 240, 3), 2, np.uint8)
    assert seen_on_flat(picture, tight, loose) == 0
    picture[tight] = 43
    assert seen_on_flat(picture, tight, loose) > 0.9


def test_rough_ground_tells_nothing(word: tuple[Mask, Mask]) -> None:
    tight, loose = word
    rough = np.random.default_rng(7).integers(0, 255, (120, 240, 3), np.uint8)
    rough[tight] = 43
    assert seen_on_flat(rough, tight, loose) == 0

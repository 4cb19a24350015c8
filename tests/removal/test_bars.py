"""Bars and frames at the borders of a picture are no marks."""

import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.removal.images.eye.detecting import detect
from headrace.removal.images.eye.frames import find_bars

Picture = NDArray[np.uint8]


def barred(picture: Picture, level: int, *, sides: bool = False) -> Picture:
    depth = 60
    noise = np.random.default_rng(1)
    widths = ((0, 0), (depth, depth), (0, 0)) if sides else ((depth, depth), (0, 0), (0, 0))
    padded = np.pad(picture, widths, constant_values=level).astype(np.int16)
    bar = np.pad(np.zeros(picture.shape[:2], np.bool_), widths[:2], constant_values=True)
    padded[bar] += noise.integers(-2, 3, (int(bar.sum()), 3), dtype=np.int16)
    return np.clip(padded, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("level", [0, 128, 255])
@pytest.mark.parametrize("sides", [False, True])
def test_bars_are_found_with_a_margin_and_nothing_else_is(scene: Picture, level: int, sides: bool) -> None:
    picture = barred(scene, level, sides=sides)
    height, width = picture.shape[:2]
    if sides:
        assert find_bars(picture) == ((0, 0, 64, height), (width - 64, 0, 64, height))
    else:
        assert find_bars(picture) == ((0, 0, width, 64), (0, height - 64, width, 64))
    assert find_bars(scene) == ()
    assert find_bars(np.full((200, 300, 3), level, np.uint8)) == ()  # a page, and not a picture in a frame


def test_a_letterbox_is_no_mark_and_a_mark_inside_is_still_found(scene: Picture, marked: Picture) -> None:
    """Bars were taken for marks in 20 of 20 clean photographs."""
    assert not any(region.score >= 0.5 for region in detect(barred(scene, 0)).regions)
    found = detect(barred(marked, 0))
    assert found.regions[0].score >= 0.5
    assert not found.loose[:60].any()
    assert not found.loose[-60:].any()

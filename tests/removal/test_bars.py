"""Bars and frames at the borders of a picture are no marks."""

import cv2
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


@pytest.mark.long
def test_a_letterbox_is_no_mark_and_a_mark_inside_is_still_found(scene: Picture, marked: Picture) -> None:
    """Bars were taken for marks in 20 of 20 clean photographs."""
    assert not any(region.score >= 0.5 for region in detect(barred(scene, 0)).regions)
    found = detect(barred(marked, 0))
    assert found.regions[0].score >= 0.5
    assert not found.loose[:60].any()
    assert not found.loose[-60:].any()


def drawn_upon(picture: Picture, *, text: str, at: tuple[int, int], size: float) -> tuple[Picture, NDArray[np.bool_]]:
    ink = np.zeros(picture.shape[:2], np.uint8)
    cv2.putText(ink, text, at, cv2.FONT_HERSHEY_DUPLEX, size, 255, 2, cv2.LINE_AA)
    alpha = ink[..., None].astype(np.float32) / 255 * 0.8
    return (picture * (1 - alpha) + 110 * alpha).round().astype(np.uint8), ink > 0


@pytest.mark.parametrize("text_and_size", [("SAMPLE STOCK", 1.2), ("x.yz", 0.35)])
@pytest.mark.parametrize("upside_down", [False, True])
def test_a_mark_on_a_bar_or_a_plain_border_is_not_excluded(
    scene: Picture, text_and_size: tuple[str, float], upside_down: bool
) -> None:
    """The bar reached some rows into large letters on it, which stayed, and over the whole of small ones."""
    text, size = text_and_size
    picture = np.pad(scene, ((0, 90), (0, 0), (0, 0)), constant_values=255)
    picture, ink = drawn_upon(picture, text=text, at=(120, scene.shape[0] + 50), size=size)
    if upside_down:
        picture, ink = np.ascontiguousarray(picture[::-1]), ink[::-1]
    for left, top, width, height in find_bars(picture):
        assert not ink[top : top + height, left : left + width].any()


def test_a_product_on_plain_ground_has_no_bars(scene: Picture) -> None:
    """Its ground is no frame: marks stand there."""
    height, width = scene.shape[:2]
    inside = np.zeros((height, width), np.uint8)
    cv2.ellipse(inside, (width // 2, height // 2), (width // 4, height // 4), 0, 0, 360, 1, -1)
    picture = np.where(inside[..., None] > 0, scene, np.uint8(250)).astype(np.uint8)
    assert find_bars(picture) == ()


def blurred_bars(picture: Picture, *, sides: bool) -> Picture:
    """The picture over a blurred, larger copy of itself, as players and phones fill a screen of another shape."""
    upright = picture.transpose(1, 0, 2) if sides else picture
    height, width = upright.shape[:2]
    depth = height // 5
    scale = (height + 2 * depth) / height
    large = cv2.GaussianBlur(cv2.resize(np.ascontiguousarray(upright), None, fx=scale, fy=scale), (0, 0), 12)
    off = (large.shape[1] - width) // 2
    filled = large[: height + 2 * depth, off : off + width].astype(np.uint8)
    filled[depth : depth + height] = upright
    return np.ascontiguousarray(filled.transpose(1, 0, 2) if sides else filled)


@pytest.fixture(scope="module")
def leaves() -> Picture:
    rng = np.random.default_rng(4)
    coarse = cv2.resize(rng.uniform(20, 230, (12, 16, 3)).astype(np.float32), (400, 300))
    fine = cv2.GaussianBlur(rng.normal(0, 90, (300, 400)).astype(np.float32), (0, 0), 1.2)
    picture: Picture = np.clip(coarse + fine[..., None], 0, 255).astype(np.uint8)
    return picture


@pytest.mark.parametrize("sides", [False, True])
def test_blurred_copies_beside_a_picture_are_bars(leaves: Picture, sides: bool) -> None:
    picture = blurred_bars(leaves, sides=sides)
    height, width = picture.shape[:2]
    bars = find_bars(picture)
    assert len(bars) == 2
    depth = (width if sides else height) // 7 + 4
    for left, top, wide, high in bars:
        assert abs((wide if sides else high) - depth) <= 2
        assert (
            (high == height and left in (0, width - wide)) if sides else (wide == width and top in (0, height - high))
        )
    assert find_bars(leaves) == ()


def test_a_bar_with_a_word_on_it_is_searched(leaves: Picture) -> None:
    picture = blurred_bars(leaves, sides=False)
    cv2.putText(picture, "moss & co", (20, 45), cv2.FONT_HERSHEY_DUPLEX, 1.0, (255, 255, 255), 2, cv2.LINE_AA)
    assert find_bars(picture) == ()

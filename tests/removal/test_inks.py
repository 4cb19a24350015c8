"""The inks of a mark are read off the picture, even where the network is wrong about them."""

import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.removal.images.eye.coverage import covered
from headrace.removal.images.eye.inks import Points, read

Numbers = NDArray[np.float64]


def points(alpha: float, colour: list[float], told: float, guess: list[float]) -> Points:
    """A mark over a wide range of pictures, seen through some grain, with what the network says of it."""
    rng = np.random.default_rng(5)
    under = rng.uniform(0, 255, (4000, 1)) + rng.normal(0, 10, (4000, 3))
    share = rng.choice([0.6, 1.0], 4000)
    marked = under + (share * alpha)[:, None] * (np.array(colour) - under)
    noise = np.full(4000, 6.0)
    return Points(
        marked, under + rng.normal(0, 6, under.shape), noise, share, np.full(4000, told), np.tile(guess, (4000, 1))
    )


@pytest.mark.parametrize(
    ("alpha", "colour", "told", "guess"),
    [
        (0.40, [255, 255, 255], 0.46, [228, 226, 224]),
        (0.45, [0, 0, 0], 0.52, [20, 18, 20]),
        (0.60, [150, 150, 150], 0.50, [170, 165, 172]),
        (0.70, [220, 20, 30], 0.50, [160, 40, 40]),
    ],
)
def test_an_ink_is_read_off_the_picture(alpha: float, colour: list[float], told: float, guess: list[float]) -> None:
    seen = points(alpha, colour, told, guess)
    inks, which = read(seen, np.ones(4000, np.bool_))
    assert len(inks) == 1
    assert not which.any()
    assert abs(inks[0].alpha - alpha) < 0.03
    assert np.abs(inks[0].colour - colour).max() < 12


def test_two_colours_are_two_inks() -> None:
    white, dark = points(0.4, [255, 255, 255], 0.44, [235, 235, 235]), points(0.6, [0, 0, 0], 0.55, [15, 15, 15])
    both = Points(*(np.concatenate([getattr(p, n) for p in (white, dark)]) for n in Points.__slots__))
    inks, which = read(both, np.ones(8000, np.bool_))
    assert [round(ink.alpha, 1) for ink in (inks[which[0]], inks[which[-1]])] == [0.4, 0.6]


def test_a_mark_of_few_pixels_is_what_the_network_says() -> None:
    inks, _ = read(points(0.4, [255, 255, 255], 0.5, [200, 200, 200]), np.arange(4000) < 10)
    assert inks[0].alpha == 0.5


def test_coverage_is_drawn_to_where_the_picture_has_its_edge() -> None:
    truth = np.zeros((40, 60), np.float32)
    truth[:, 20:40] = 1
    picture = np.repeat((60 + 80 * truth)[..., None], 3, 2).astype(np.float32)
    blurred = 0.4 * np.clip(np.convolve(truth[0], np.ones(5) / 5, "same"), 0, 1).astype(np.float32)
    alpha = np.tile(blurred, (40, 1))
    share, whole = covered(picture, alpha, alpha > 0)
    before = np.abs(np.clip(alpha / 0.4, 0, 1) - truth).mean()
    assert np.abs(share - truth).mean() < 0.85 * before
    assert np.allclose(whole[5:-5, 28:32], 0.93 * 0.4, atol=0.01)

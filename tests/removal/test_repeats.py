"""A mark that is repeated is seen as a whole, by what its copies say together."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.removal.images.eye import detecting, repeats

Levels = NDArray[np.uint8]
SIZE = (600, 960)
GREY = np.full((*SIZE, 3), 128, np.uint8)
ONE, OTHER = np.array([170.4, -48.2]), np.array([71.3, 128.9])


def _copies(*, faint: int) -> tuple[Levels, NDArray[np.bool_]]:
    """The probability of a word at every point of a lattice, every third copy as faint as this; and the word."""
    word = np.zeros((60, 200), np.uint8)
    cv2.putText(word, "Tern", (20, 44), cv2.FONT_HERSHEY_DUPLEX, 1.4, 255, 4, cv2.LINE_AA)
    likely, truth = np.full(SIZE, 3, np.uint8), np.zeros(SIZE, np.uint8)
    for a in range(-8, 9):
        for b in range(-8, 9):
            x, y = 400 + a * ONE + b * OTHER - np.array([100, 30])
            there = cv2.warpAffine(word, np.array([[1, 0, x], [0, 1, y]]), SIZE[::-1])
            chance = faint if (a + b) % 3 == 0 else 240
            likely = np.maximum(likely, np.rint(there * (chance / 255)).astype(np.uint8))
            truth = np.maximum(truth, there)
    return likely, truth >= 200


def _planes(likely: Levels) -> Levels:
    seen = (likely >= 128).astype(np.uint8)
    return np.stack([likely, 100 * seen, 90 * seen, 90 * seen, 90 * seen, 10 * seen])


def test_the_steps_from_copy_to_copy_are_found() -> None:
    likely, _ = _copies(faint=20)
    lattice = repeats.find(likely)
    assert lattice is not None
    steps = np.stack([lattice.one, lattice.other])
    counts = np.stack([ONE, OTHER]) @ np.linalg.inv(steps)
    assert np.abs(counts - np.rint(counts)).max() < 0.01
    assert abs(abs(np.linalg.det(steps)) - abs(np.linalg.det(np.stack([ONE, OTHER])))) < 0.01 * abs(
        np.linalg.det(steps)
    )


def test_a_faint_copy_is_seen_by_the_others_word_with_their_alpha_and_colour() -> None:
    likely, truth = _copies(faint=20)
    planes = _planes(likely)
    regions, tight, _, score, _ = detecting._made_out(GREY, planes, likely.copy(), np.ones(SIZE, np.bool_))
    assert regions
    assert sum(region.pixels for region in regions) == tight.sum()
    assert max(region.width for region in regions) < SIZE[1], "one of the ground"
    assert score > 0.5
    assert (tight & truth).sum() > 0.95 * truth.sum()
    assert (
        tight & cv2.dilate(truth.view(np.uint8), np.ones((5, 5), np.uint8)).view(np.bool_)
    ).sum() > 0.95 * tight.sum()
    core = cv2.erode(truth.view(np.uint8), np.ones((3, 3), np.uint8)).view(np.bool_)
    assert abs(float(np.median(planes[1][core])) - 100) < 8
    assert np.percentile(planes[1][core], 5) > 50


def test_a_mark_beside_the_repeated_one_stays_as_it_was_seen() -> None:
    likely, _ = _copies(faint=20)
    likely[250:350, 420:560] = 3
    likely[280:320, 450:530] = 254
    planes = _planes(likely)
    before = planes[:, 280:320, 450:530].copy()
    _, tight, *_ = detecting._made_out(GREY, planes, likely.copy(), np.ones(SIZE, np.bool_), prior=1.0)
    assert tight[300, 490]
    assert np.array_equal(planes[:, 290:310, 470:510], before[:, 10:30, 20:60])


@pytest.mark.parametrize("shape", [(1, 1), (1, 10_000), (40, 40), (300, 400)])
def test_nothing_is_repeated_where_nothing_is(shape: tuple[int, int]) -> None:
    assert repeats.find(np.zeros(shape, np.uint8)) is None
    assert repeats.find(np.full(shape, 255, np.uint8)) is None


def test_one_word_is_not_repeated() -> None:
    likely = np.zeros(SIZE, np.uint8)
    cv2.putText(likely, "SAMPLE sample", (60, 320), cv2.FONT_HERSHEY_DUPLEX, 3.5, 250, 9, cv2.LINE_AA)
    assert repeats.find(likely) is None


def test_in_a_strip_too_long_to_be_folded_nothing_is_repeated() -> None:
    copy = np.zeros((150, 900), np.uint8)
    cv2.putText(copy, "Tern", (20, 90), cv2.FONT_HERSHEY_DUPLEX, 2.5, (250,), 10)
    strip = np.tile(copy, (5, 37))  # 33,300 pixels
    assert repeats.find(strip[:, :31_500]) is not None
    assert repeats.find(strip) is None


def test_peaks_that_all_lead_to_one_place_are_no_lattice() -> None:
    class OnePeak(repeats._Likeness):
        def __init__(self) -> None:
            pass

        def peak(self, shift: repeats.Numbers, reach: int) -> tuple[repeats.Numbers, float]:
            return 0 * shift, float(reach > 0)

    assert repeats._settled(OnePeak(), np.array([40.0, 0.0]), np.array([0.0, 40.0])) is None

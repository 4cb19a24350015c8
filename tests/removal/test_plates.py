"""A plate that the eye sees in part goes whole; what is no rectangle stays as it was seen."""

import cv2
import numpy as np
import pytest

from headrace.removal.images.eye import plates
from headrace.removal.images.eye.model import Levels, Mask, Picture, Region

SIZE = (200, 400)


def scene() -> Picture:
    rng = np.random.default_rng(2)
    soft = cv2.resize(rng.uniform(120, 180, (5, 8)).astype(np.float32), SIZE[::-1], interpolation=cv2.INTER_CUBIC)
    grey = np.clip(soft + rng.normal(0, 3, SIZE), 0, 255).astype(np.uint8)
    return np.repeat(grey[..., None], 3, 2)


def seen_as(tight: Mask) -> Levels:
    planes = np.zeros((6, *SIZE), np.uint8)
    planes[0], planes[1] = 230 * tight, 150 * tight
    return planes


def region(tight: Mask) -> list[Region]:
    rows, columns = np.flatnonzero(tight.any(1)), np.flatnonzero(tight.any(0))
    left, top = int(columns[0]), int(rows[0])
    return [Region(left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top, 0.8, int(tight.sum()))]


def ragged(truth: Mask) -> Mask:
    """Most of it, but for its right end and bites out of its lower side."""
    tight = truth.copy()
    columns = np.flatnonzero(truth.any(0))
    tight[:, columns[-1] - 25 :] = False
    rows = np.flatnonzero(truth.any(1))
    tight[rows[-1] - 8 :, columns[0] + 20 : columns[0] + 60] = False
    return tight


@pytest.mark.parametrize("shade", [0.4, 1.35])
def test_the_rest_of_a_plate_goes_too_with_what_is_seen_of_it(shade: float) -> None:
    picture, truth = scene(), np.zeros(SIZE, np.bool_)
    truth[60:110, 90:290] = True
    picture[truth] = np.clip(picture[truth] * shade, 0, 255).astype(np.uint8)
    tight = ragged(truth)
    planes, certainty = seen_as(tight), np.zeros(SIZE, np.uint8)
    plates.complete(picture, planes, tight, region(tight), certainty)
    assert (tight & truth).sum() > 0.97 * truth.sum()
    assert (tight & ~truth).sum() < 0.03 * truth.sum()
    assert planes[1, 100, 280] == 150
    assert certainty[100, 280] == 204


def test_a_band_goes_from_border_to_border() -> None:
    picture, truth = scene(), np.zeros(SIZE, np.bool_)
    truth[120:150] = True
    picture[truth] = picture[truth] // 2
    tight = truth.copy()
    tight[:, :60] = tight[:, 200:230] = False
    plates.complete(picture, seen_as(tight), tight, region(tight))
    assert (tight & truth).sum() > 0.95 * truth.sum()
    assert (tight & ~truth).sum() < 0.05 * truth.sum()


def test_a_disc_is_no_plate() -> None:
    picture, drawn = scene(), np.zeros(SIZE, np.uint8)
    cv2.circle(drawn, (200, 100), 60, (1,), -1)
    tight = drawn.view(np.bool_)
    picture[tight] = 40
    before = tight.copy()
    plates.complete(picture, seen_as(tight), tight, region(tight))
    assert np.array_equal(tight, before)


def test_letters_without_a_plate_stay_letters() -> None:
    picture, drawn = scene(), np.zeros(SIZE, np.uint8)
    cv2.putText(drawn, "HEADRACE", (60, 120), cv2.FONT_HERSHEY_DUPLEX, 1.6, (1,), 4)
    tight = drawn.view(np.bool_)
    picture[tight] = 250
    before = tight.copy()
    plates.complete(picture, seen_as(tight), tight, region(tight))
    assert np.array_equal(tight, before)

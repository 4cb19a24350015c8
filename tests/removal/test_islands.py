"""Islands in a mark: what goes on in its colour is claimed, the picture through a letter is not."""

import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.removal.images.eye import islands
from headrace.removal.images.eye.model import Region

WHOLE = [Region(20, 20, 80, 80, 1.0, 6400)]


def logo(hole: NDArray[np.uint8], alpha: int = 230) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.bool_]]:
    """A red square on grey with an island in the middle that the eye did not count to it."""
    picture = np.full((120, 120, 3), 128, np.uint8)
    picture[20:100, 20:100] = (200, 30, 30)
    picture[50:70, 50:70] = hole
    tight = np.zeros((120, 120), np.bool_)
    tight[20:100, 20:100] = True
    tight[49:71, 49:71] = False
    seen = np.zeros((6, 120, 120), np.uint8)
    seen[0], seen[1] = 240 * tight, alpha * tight
    return picture, seen, tight


def test_an_overlooked_part_is_claimed_with_its_own_colour() -> None:
    picture, seen, tight = logo(np.array([200, 30, 30], np.uint8))
    islands.claim(picture, seen, tight, WHOLE)
    assert tight[20:100, 20:100].all()
    assert seen[1:5, 60, 60].tolist() == [255, 200, 30, 30]
    assert not tight[:20].any()


@pytest.mark.parametrize(("hole", "alpha"), [((128, 128, 128), 230), ((200, 30, 30), 40)])
def test_the_picture_through_a_letter_is_left_and_so_are_weak_marks(hole: tuple[int, int, int], alpha: int) -> None:
    picture, seen, tight = logo(np.array(hole, np.uint8), alpha)
    before = tight.copy()
    islands.claim(picture, seen, tight, WHOLE)
    assert np.array_equal(tight, before)


def test_the_picture_in_a_thin_frame_of_its_own_colour_is_left() -> None:
    picture, seen, tight = logo(np.array([200, 30, 30], np.uint8))
    tight[24:96, 24:96] = False
    seen *= tight
    before = tight.copy()
    islands.claim(picture, seen, tight, [Region(20, 20, 80, 80, 1.0, int(tight.sum()))])
    assert np.array_equal(tight, before)


def test_specks_in_what_hides_the_picture_are_closed_whatever_their_colour() -> None:
    picture, seen, tight = logo(np.array([200, 30, 30], np.uint8), alpha=250)
    picture[30:34, 30:34] = 255
    tight[30:34, 30:34] = False
    islands.claim(picture, seen, tight, WHOLE)
    assert tight[30:34, 30:34].all()


def test_what_was_claimed_is_as_certain_as_its_region() -> None:
    picture, seen, tight = logo(np.array([200, 30, 30], np.uint8))
    certainty = np.zeros(tight.shape, np.uint8)
    islands.claim(picture, seen, tight, [Region(20, 20, 80, 80, 0.8, 6400)], certainty)
    assert certainty[60, 60] == 204

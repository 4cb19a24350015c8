"""A picture worked on twice. W-03"""

import numpy as np
import pytest

from headrace.removal.images.eye.hinting import Hints
from headrace.removal.images.eye.model import Restoration
from headrace.removal.images.second_pass import _mirrored, with_second_pass
from tests.removal.conftest import Picture


@pytest.mark.slow
def test_a_second_pass_changes_nothing_that_the_first_has_not_and_is_no_worse(
    marked: Picture, scene: Picture, restored: Restoration
) -> None:
    twice = with_second_pass(marked, restored, None, threads=2)
    once = (restored.picture != marked).any(2)
    assert (twice.picture[~once] == marked[~once]).all()
    assert (twice.picture != restored.picture).any()
    errors = [np.square(each.astype(float) - scene)[once].mean() for each in (restored.picture, twice.picture)]
    assert errors[1] < 1.02 * errors[0]


def test_hints_are_mirrored_with_the_picture() -> None:
    mask = np.zeros((10, 100), np.bool_)
    mask[2, 3] = True
    hints = Hints(
        boxes=((10, 1, 20, 5), (90, 0, 50, 3)), keep=((0, 0, 1, 1),), mask=mask, polygons=(((0, 0), (9, 9), (0, 9)),)
    )
    turned = _mirrored(hints, 100)
    assert turned is not None
    assert (turned.boxes, turned.keep) == (((70, 1, 20, 5), (0, 0, 10, 3)), ((99, 0, 1, 1),))
    assert turned.polygons == (((100, 0), (91, 9), (100, 9)),)
    assert turned.mask is not None
    assert np.argwhere(turned.mask).tolist() == [[2, 96]]
    assert _mirrored(None, 100) is None

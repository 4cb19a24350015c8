"""The refiner finishes a draft: it stays near it on smooth ground, and knows any size."""

import numpy as np
import pytest

from headrace.removal.images.eye import refining
from headrace.removal.images.eye.refining import Draft, refine


def draft(height: int, width: int, rough: float) -> Draft:
    """A grey hole in a grey picture, filled in as it should be; the mark itself was white."""
    grey, none = np.full((height, width, 3), 120, np.float32), np.zeros((height, width), np.float32)
    loose = np.zeros((height, width), np.bool_)
    loose[height // 4 : height // 2 + 1, width // 4 : width // 2 + 1] = True
    marked = np.where(loose[..., None], np.float32(255), grey)
    inside = loose.astype(np.float32)
    return Draft(
        marked=marked,
        filled=grey,
        computed=marked,
        blend=grey,
        colour=marked,
        opacity=inside,
        invented=inside,
        rough=none + np.float32(rough),
        missed=none + np.float32(rough),
        doubt=none,
        likely=255 * inside,
        loose=loose,
    )


@pytest.mark.parametrize("shape", [(1, 1), (7, 9), (64, 40)])
def test_any_size_is_finished(shape: tuple[int, int]) -> None:
    finished, bare = refine(draft(*shape, rough=5))
    assert finished.shape == (*shape, 3)
    assert np.isfinite(finished).all()
    assert bare.shape == shape
    assert 0 <= bare.min() <= bare.max() <= 1


def test_on_smooth_ground_nothing_is_added_to_what_was_filled_in() -> None:
    hole = draft(64, 64, rough=1)
    assert np.abs(refine(hole)[0][hole.loose] - 120).max() <= 1e-3


def test_in_bands_it_is_finished_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draft(400, 96, rough=9)
    monkeypatch.setattr(refining, "_BAND_ROWS", 400)
    one, bare = refine(whole)
    monkeypatch.setattr(refining, "_BAND_ROWS", 120)
    finished, said = refine(whole)
    assert np.abs(finished - one).max() < 0.01
    assert np.abs(said - bare).max() < 0.001

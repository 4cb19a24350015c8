"""Large pictures: what is too wide to be seen at full size is seen, and taken off, on a smaller copy."""

import dataclasses

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.removal.images.eye import scales
from headrace.removal.images.eye.detecting import detect
from headrace.removal.images.eye.enlarging import enlarge
from headrace.removal.images.eye.model import Detection, Restoration, shrunk
from headrace.removal.images.eye.solving import solve

Picture = NDArray[np.uint8]
Levels = NDArray[np.uint8]
SIZE = (2201, 1518)  # width and height: no multiples of the step


@pytest.fixture(scope="module")
def large() -> tuple[Picture, Picture]:
    """A picture of three megapixels with some detail, and a word over it whose strokes are 90 pixels wide."""
    rng = np.random.default_rng(5)
    soft = cv2.resize(rng.uniform(40, 170, (6, 8, 3)).astype(np.float32), SIZE, interpolation=cv2.INTER_CUBIC)
    leaves = cv2.resize(rng.normal(0, 3, (190, 275, 3)).astype(np.float32), SIZE, interpolation=cv2.INTER_CUBIC)
    scene = np.clip(soft + leaves + rng.normal(0, 2, soft.shape), 0, 255).astype(np.uint8)
    ink = np.zeros(scene.shape[:2], np.uint8)
    cv2.putText(ink, "SAMPLE", (50, 930), (255,), cv2.FontFace("sans"), 500, 700)
    alpha = ink[..., None].astype(np.float32) / 255 * 0.45
    return scene, np.rint(scene * (1 - alpha) + 255 * alpha).astype(np.uint8)


@pytest.fixture(scope="module")
def detection(large: tuple[Picture, Picture]) -> Detection:
    return detect(large[1])


@pytest.fixture(scope="module")
def restored(large: tuple[Picture, Picture], detection: Detection) -> Restoration:
    return solve(large[1].copy(), detection, in_place=True)


def wrong(picture: Picture, scene: Picture, where: NDArray[np.bool_]) -> float:
    return float(((picture.astype(np.float32) - scene) ** 2)[where].mean())


@pytest.mark.slow
def test_wide_letters_are_seen_on_a_smaller_copy_and_taken_off_the_picture(
    large: tuple[Picture, Picture], detection: Detection, restored: Restoration
) -> None:
    scene, marked = large
    truth = (marked != scene).any(2)
    assert detection.step > 1
    assert (detection.mask_tight & truth).sum() > 0.9 * truth.sum()
    before = marked.copy()
    assert np.array_equal(solve(marked, detection).picture, restored.picture)
    assert np.array_equal(marked, before)
    assert not (restored.picture != marked).any(2)[~detection.mask_loose].any()
    assert wrong(restored.picture, scene, truth) < wrong(marked, scene, truth) / 30


@pytest.mark.slow
def test_the_picture_keeps_the_detail_that_a_smaller_copy_lacks(
    large: tuple[Picture, Picture], restored: Restoration
) -> None:
    scene, marked = large
    inside = cv2.erode((marked != scene).any(2).view(np.uint8), np.ones((25, 25), np.uint8)).view(np.bool_)

    def detail(picture: Picture) -> NDArray[np.float32]:
        grey = picture.mean(2, dtype=np.float32)
        fine: NDArray[np.float32] = (grey - cv2.blur(grey, (5, 5)))[inside]
        return fine

    assert np.corrcoef(detail(restored.picture), detail(scene))[0, 1] > 0.7


@pytest.mark.slow
def test_a_small_mark_beside_a_huge_one_goes_too_at_its_own_size(large: tuple[Picture, Picture]) -> None:
    scene, marked = large
    ink = np.zeros(scene.shape[:2], np.uint8)
    cv2.putText(ink, "Mara Lind 2026", (1800, 1480), (255,), cv2.FontFace("sans"), 24, 400)
    alpha = ink[..., None].astype(np.float32) / 255 * 0.7
    both = np.rint(marked * (1 - alpha) + 255 * alpha).astype(np.uint8)
    small = ink > 0
    detection = detect(both)
    assert detection.step > 1
    assert detection.finer is not None
    assert detection.finer.step == 1
    assert detection.mask_tight[small].mean() > 0.9
    strong = ink == 255
    assert np.median(detection.alpha[strong]) == pytest.approx(0.7, abs=0.15)
    assert np.median(detection.colour[strong]) > 215
    restored = solve(both, detection)
    assert wrong(restored.picture, scene, small) < wrong(both, scene, small) / 20
    huge = (marked != scene).any(2)
    assert wrong(restored.picture, scene, huge) < wrong(both, scene, huge) / 30
    assert not (restored.picture != both).any(2)[~detection.mask_loose].any()
    half = solve(both, dataclasses.replace(detection, finer=dataclasses.replace(detection.finer, score=0.1)))
    assert half.refused is None
    assert half.confidence < restored.confidence, "the small one stays"
    none = solve(both, dataclasses.replace(detection, score=0.1))
    assert none.refused is None
    assert none.confidence == 0, "the huge one stays"


def as_levels(mask: NDArray[np.bool_], value: int) -> Levels:
    return np.where(mask, value, 0).astype(np.uint8)


def bars(width: int) -> NDArray[np.bool_]:
    mask = np.zeros((200, 300), np.bool_)
    for left in (40, 140, 240):
        mask[40:160, left : left + width] = True
    return mask


def test_only_wide_strokes_that_are_hidden_speak_for_a_smaller_copy() -> None:
    wide, sure = bars(40), as_levels(bars(40), 254)
    nowhere = np.zeros((400, 600), np.bool_)
    everywhere = wide.repeat(2, 0).repeat(2, 1)
    assert scales.may_be_wide(sure)
    assert scales.compare(wide, sure, sure, nowhere).hidden == 1
    assert scales.compare(wide, sure, sure, everywhere).hidden == 0
    assert scales.compare(wide, sure, sure, everywhere).very_wide == 1, "seen, but better solved here"
    narrow = as_levels(bars(6), 254)
    assert not scales.may_be_wide(narrow)
    assert scales.compare(bars(6), narrow, narrow, nowhere)[:2] == (0, 0)


def test_what_is_sure_on_one_copy_only_is_doubtful_unless_the_larger_one_shows_it() -> None:
    """The sun over the sea."""
    wide, sure, unsure = bars(40), as_levels(bars(40), 254), as_levels(bars(40), 200)
    first = wide & (np.arange(300) < 100)
    larger = first.repeat(2, 0).repeat(2, 1)
    for likely, coarse in ((sure, unsure), (unsure, sure)):
        verdict = scales.compare(wide, likely, coarse, larger)
        assert verdict.hidden == 0
        assert np.array_equal(verdict.others, wide & ~first)


def test_a_letter_beside_sure_ones_needs_less_certainty() -> None:
    wide, sure = bars(40), as_levels(bars(40), 254)
    nowhere = np.zeros((400, 600), np.bool_)
    weaker = np.where(np.arange(300) < 100, 240, 254).astype(np.uint8) * wide
    assert not scales.compare(wide, weaker, sure, nowhere).others.any()
    alone = wide & (np.arange(300) < 100)
    assert np.array_equal(scales.compare(alone, weaker, sure, nowhere).others, alone)


def test_what_is_narrow_and_seen_on_the_larger_copy_is_left_to_it() -> None:
    narrow, sure = bars(6), as_levels(bars(6), 254)
    assert np.array_equal(scales.compare(narrow, sure, sure, narrow.repeat(2, 0).repeat(2, 1)).others, narrow)


def _bar(*, strength: int, doubtful: int) -> tuple[Levels, Levels]:
    """What a picture shows of a wide bar, its left third and doubt elsewhere; and a half-size copy, all of it."""
    small = np.zeros((6, 60, 90), np.uint8)
    small[:, 20:40, 10:70] = np.array([250, strength, 80, 80, 80, 9], np.uint8)[:, None, None]
    seen = np.zeros((6, 120, 180), np.uint8)
    seen[0, 40:80, 20:140] = doubtful
    seen[:, 40:80, 20:70] = np.array([240, 90, 70, 70, 70, 5], np.uint8)[:, None, None]
    return seen, small


def test_what_only_the_smaller_copy_shows_of_a_stroke_is_entered() -> None:
    seen, small = _bar(strength=100, doubtful=30)
    tight = seen[0] >= 60
    certainty = as_levels(tight, 200)
    scales.fill_in(seen, small, tight, certainty)
    assert tight[42:78, 22:136].all()
    assert (certainty[tight] == 200).all()
    assert seen[1, 60, 120] == 100, "what it is made of comes along"
    assert seen[1, 60, 40] == 90, "what the picture shows stays"
    assert not tight[:36].any()
    assert not tight[:, 146:].any()


@pytest.mark.parametrize(("strength", "doubtful", "shown"), [(100, 0, 50), (100, 30, 8)])
def test_what_the_picture_denies_or_hardly_shows_is_not_entered(strength: int, doubtful: int, shown: int) -> None:
    seen, small = _bar(strength=strength, doubtful=doubtful)
    tight = (seen[0] >= 60) & (np.arange(180) < 20 + shown)
    before = tight.copy()
    scales.fill_in(seen, small, tight, as_levels(tight, 200))
    assert np.array_equal(tight, before)


def test_ink_that_hides_the_picture_is_entered_even_where_it_is_denied() -> None:
    seen, small = _bar(strength=250, doubtful=0)
    tight = seen[0] >= 60
    scales.fill_in(seen, small, tight, as_levels(tight, 200))
    assert tight[42:78, 22:136].all()


def test_nothing_is_hidden_where_nothing_is_seen() -> None:
    nothing = np.zeros((50, 60), np.bool_)
    verdict = scales.compare(nothing, nothing.view(np.uint8), nothing.view(np.uint8), np.zeros((100, 120), np.bool_))
    assert verdict.hidden == 0
    assert not verdict.others.any()


@pytest.mark.parametrize(("height", "width", "step"), [(8, 12, 4), (9, 13, 4), (1, 10, 2), (7, 1, 8), (1030, 5, 2)])
def test_a_smaller_copy_is_made_of_means_over_squares(height: int, width: int, step: int) -> None:
    picture = np.random.default_rng(2).uniform(0, 255, (height, width, 3)).astype(np.float32)
    small = shrunk(picture, step)
    assert small.shape == (-(-height // step), -(-width // step), 3)
    whole_rows, whole_columns = height // step, width // step
    squares = picture[: whole_rows * step, : whole_columns * step].reshape(whole_rows, step, whole_columns, step, 3)
    assert np.allclose(small[:whole_rows, :whole_columns], squares.mean((1, 3)), atol=1e-3)


def test_what_a_copy_shows_as_it_was_stays_on_the_picture() -> None:
    """Blocks that kept their mark, and openings in it."""
    rng = np.random.default_rng(1)
    picture = rng.integers(60, 90, (403, 602, 3)).astype(np.uint8)
    seen = shrunk(picture, 2)
    tight = np.zeros(seen.shape[:2], np.bool_)
    tight[40:160, 40:260] = True
    plane = as_levels(tight, 128)
    tint = np.repeat(plane[..., None], 3, 2)
    solved = tight & (np.arange(301) < 150)  # the left half alone
    clean = seen.copy()
    clean[solved] -= 20
    result = picture.copy()
    enlarge(result, clean, Detection(403, 602, 2, solved, solved, plane, plane, tint, np.zeros_like(plane), 1.0, ()))
    changed = (result != picture).any(2)
    assert changed[80:320, 80:300].mean() > 0.95
    assert not changed[:, 300:].any()
    assert result[100:300, 100:280].mean() == pytest.approx(picture[100:300, 100:280].mean() - 20, abs=1)


@pytest.mark.slow
def test_a_copy_that_leaves_no_mark_by_itself_takes_none_away(
    large: tuple[Picture, Picture], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, marked = large
    everything = scales.Verdict(1.0, 1.0, np.ones(shrunk(marked, 2).shape[:2], np.bool_))
    monkeypatch.setattr(scales, "compare", lambda *_: everything)
    detection = detect(marked)
    assert detection.step == 1
    assert detection.regions
    assert detection.tight.shape == marked.shape[:2]

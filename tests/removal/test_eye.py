"""The eye sees a mark, leaves the rest alone, and gives the same answer every time."""

import dataclasses
import hashlib
import itertools
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.removal.errors import ModelDamaged
from headrace.removal.images.eye import detecting, solving, weights
from headrace.removal.images.eye.detecting import detect
from headrace.removal.images.eye.model import Detection, Region, Restoration
from headrace.removal.images.eye.solving import solve

Picture = NDArray[np.uint8]


def test_a_mark_is_found_and_mostly_taken_off(
    scene: Picture, marked: Picture, detection: Detection, restored: Restoration
) -> None:
    truth = np.abs(marked.astype(int) - scene).max(2) > 2
    found = detection.mask_tight
    assert detection.regions
    assert detection.score > 0.5
    assert (found & truth).sum() / truth.sum() > 0.85
    assert restored.refused is None

    def wrong(picture: Picture) -> float:
        return float(((picture.astype(float) - scene) ** 2)[truth].mean())

    assert wrong(restored.picture) < wrong(marked) / 4


def test_nothing_changes_far_from_what_was_seen(marked: Picture, detection: Detection, restored: Restoration) -> None:
    # A second look may find a part of the mark beside what the first one saw.
    near = cv2.dilate(detection.mask_loose.view(np.uint8), np.ones((121, 121), np.uint8)).view(np.bool_)
    assert not (restored.picture != marked).any(2)[~near].any()


def test_a_clean_picture_is_left_alone(scene: Picture) -> None:
    detection = detect(scene)
    assert detection.score < 0.5
    restored = solve(scene, detection)
    assert restored.refused
    assert np.array_equal(restored.picture, scene)


@pytest.mark.slow
def test_the_answer_is_the_same_twice_and_on_any_number_of_threads(marked: Picture) -> None:
    wide = np.tile(marked[120:320], (1, 2, 1))  # two tiles: four threads see both at once
    first = detect(wide, threads=1)
    assert first.regions
    again = detect(wide, threads=4)
    assert np.array_equal(first.tight, again.tight)
    assert np.array_equal(first.strength, again.strength)
    assert np.array_equal(first.tint, again.tint)
    assert first.regions == again.regions
    assert np.array_equal(solve(wide, first).picture, solve(wide, again).picture)


def test_where_the_mark_hides_everything_nothing_is_made_up() -> None:
    hidden, whole = np.full((40, 40, 3), 250, np.uint8), np.ones((40, 40), np.bool_)
    opaque = np.full((40, 40), 255, np.uint8)
    regions = (Region(0, 0, 40, 40, 1.0, 1600),)
    restored = solve(hidden, Detection(40, 40, 1, whole, whole, opaque, opaque, hidden, opaque * 0, 1.0, regions))
    assert restored.refused
    assert np.array_equal(restored.picture, hidden)


@pytest.mark.parametrize("shape", [(1, 1), (1, 10_000), (10_000, 1), (3, 5, 3), (31, 33, 4), (70, 70, 1)])
def test_odd_shapes_are_looked_at(shape: tuple[int, ...]) -> None:
    detection = detect(np.full(shape, 90, np.uint8))
    assert detection.mask_tight.shape == shape[:2]
    assert detection.alpha.shape == shape[:2]


def test_sixteen_bits_are_seen_as_eight(marked: Picture, detection: Detection) -> None:
    assert np.array_equal(detect(marked.astype(np.uint16) << 8).tight, detection.tight)


def test_what_is_no_image_is_refused() -> None:
    for bad in (np.zeros((0, 4), np.uint8), np.zeros((4, 4), np.float32), np.zeros(4, np.uint8)):
        with pytest.raises(ValueError, match="an image has"):
            detect(bad)


@pytest.mark.slow
def test_a_tiled_look_covers_what_is_larger_than_a_tile(marked: Picture) -> None:
    large = np.tile(marked, (2, 2, 1))
    seen = detect(large).mask_tight
    parts = [seen[y : y + 480, x : x + 640].mean() for y in (0, 480) for x in (0, 640)]
    assert min(parts) > 0.5 * max(parts) > 0


def test_another_model_file_is_refused(tmp_path: Path) -> None:
    assert sum(model.file.stat().st_size for model in (weights.DETECTOR, weights.REFINER)) <= 12_000_000
    for model in (weights.DETECTOR, weights.REFINER):
        content = model.file.read_bytes()
        assert hashlib.sha256(content).hexdigest() == model.sha256
        other = tmp_path / model.file.name
        other.write_bytes(content[:-1] + b"x")
        with pytest.raises(ModelDamaged):
            weights.run(dataclasses.replace(model, file=other), np.zeros((3, 32, 32), np.float32))


def test_a_second_look_is_taken_only_where_the_first_found_something() -> None:
    coarse = np.zeros((2000, 3000), np.uint8)
    assert detecting._tiles_around(coarse) == []
    coarse[100, 100] = 255  # a speck
    assert detecting._tiles_around(coarse) == []
    coarse[1800:1850, 2700:2800] = 255
    (tile,) = detecting._tiles_around(coarse)
    assert tile == (slice(1636, 2000), slice(2536, 2964))


@pytest.mark.long
def test_blocks_meet_without_a_seam(
    scene: Picture, marked: Picture, detection: Detection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solving, "_BLOCK_PX", 128)
    inside = detection.mask_tight[:, 1:] & detection.mask_tight[:, :-1]
    for in_place in (False, True):
        restored = solve(marked.copy(), detection, in_place=in_place).picture
        step = np.abs(np.diff(restored.astype(float) - scene, axis=1)).mean(2)
        seams = [step[:, x - 1][inside[:, x - 1]].mean() for x in (128, 256, 384, 512) if inside[:, x - 1].any()]
        assert len(seams) > 1
        assert max(seams) < 2.5 * step[inside].mean()


def test_what_is_doubtful_by_itself_stays(marked: Picture, detection: Detection) -> None:
    certainty = np.full(detection.tight.shape, 255, np.uint8)
    certainty[:, :320] = 150
    regions = (dataclasses.replace(detection.regions[0], score=0.55), detection.regions[0])
    tight, loose = detection.tight.copy(), detection.loose.copy()
    tight[:, 305:335] = loose[:, 305:335] = False  # two regions, the left one doubtful
    doubtful = dataclasses.replace(detection, tight=tight, loose=loose, certainty=certainty, regions=regions)
    solved = solve(marked, doubtful, least_score=0.8)
    changed = (solved.picture != marked).any(2)
    assert changed[:, 335:].any()
    assert not changed[:, :305].any()
    assert solved.confidence < 0.8 * solve(marked, doubtful).confidence, "half of the mark is still there"
    assert np.array_equal(doubtful.tight, tight)


def test_a_mark_that_stays_in_part_is_told_by_the_confidence(
    marked: Picture, detection: Detection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solving, "_BLOCK_PX", 256)

    def solved(*first: float) -> Restoration:
        traces = itertools.chain(first, itertools.cycle([100.0, 0.0]))  # what a block shows before, and after
        monkeypatch.setattr(solving, "residue", lambda *_: next(traces))
        return solve(marked, detection)

    whole, partly = solved(), solved(1, 2)
    assert partly.inverted + partly.filled < whole.inverted + whole.filled
    assert partly.confidence < 0.95 * whole.confidence


def test_what_spans_the_picture_without_repeating_is_asked_about(marked: Picture, detection: Detection) -> None:
    height, width = marked.shape[:2]
    spans = dataclasses.replace(detection, regions=(Region(0, 0, width, height, 0.9, 5000),), repeated=False)
    asked = solve(marked, spans)
    assert asked.refused
    assert asked.needs_review
    assert np.array_equal(asked.picture, marked)
    assert solve(marked, dataclasses.replace(spans, confirmed=True)).refused is None
    assert solve(marked, dataclasses.replace(spans, repeated=True)).refused is None


@pytest.mark.parametrize("in_place", [pytest.param(False, marks=pytest.mark.slow), True])
def test_what_would_be_poor_is_taken_back_and_asked_about(
    marked: Picture, detection: Detection, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    monkeypatch.setattr(solving, "_chance_of_good", lambda *_: 0.1)
    picture = marked.copy()
    asked = solve(picture, detection, in_place=in_place)
    assert asked.needs_review
    assert np.array_equal(asked.picture, marked)
    assert np.array_equal(picture, marked)
    told = solve(picture, dataclasses.replace(detection, confirmed=True))
    assert told.refused is None
    assert told.needs_look

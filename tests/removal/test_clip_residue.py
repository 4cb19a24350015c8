"""What is left of a mark in a clip is seen, whichever way it was left. W-08"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.in_process import process
from headrace.removal.images.views.solving import Matte
from headrace.removal.order import FailureCode, Hint, Order
from headrace.removal.report import Box, Check, Method, Outcome
from headrace.removal.video import checking, solving, static_marks, templates
from headrace.removal.video.frame_removal import Eraser
from headrace.removal.video.planes import layout_of
from headrace.removal.video.probing import probe
from headrace.removal.video.sampling import Sample
from tests.removal import clips

pytestmark = pytest.mark.long

LAYOUT = layout_of("yuv444p", full=True)
BOX = (0, clips.HEIGHT, 0, clips.WIDTH)


def nothing(_percent: int) -> None:
    pass


def samples(added: NDArray[np.float32], count: int = 12) -> list[Sample]:
    """Different pictures, each with the same added to its brightness."""
    found = []
    for number, scene in enumerate(clips.scenes(count)):
        bright = np.clip(scene[:, : clips.WIDTH, 1] * 0.6 + 40 + added, 0, 255).astype(np.uint8)
        grey = np.full_like(bright, 128)
        found.append(Sample(number, float(number), [bright, grey, grey]))
    return found


@pytest.mark.parametrize(
    ("left", "least", "most"),
    [
        pytest.param(0.0, 0.0, 0.1, id="gone"),
        pytest.param(1.0, 0.95, 1.05, id="all of it"),
        pytest.param(-0.6, 0.5, 0.7, id="taken off too much"),
    ],
)
def test_edges_that_stay_tell_how_much_of_a_mark_is_left(left: float, least: float, most: float) -> None:
    ink = clips.coverage() * np.float32(60)
    before, after = samples(ink), samples(ink * np.float32(left))
    assert least <= solving.lasting(before, after, (LAYOUT, LAYOUT), BOX, clips.coverage() > 0.02) <= most


def test_where_the_picture_stands_still_its_own_edges_tell_nothing() -> None:
    ragged = np.random.default_rng(3).uniform(0, 60, (clips.HEIGHT, clips.WIDTH)).astype(np.float32)
    assert solving.lasting(samples(ragged), samples(ragged), (LAYOUT, LAYOUT), BOX, clips.coverage() > 0.02) == 0


@pytest.mark.parametrize(
    ("left", "least", "most"),
    [
        pytest.param(0.0, 0.8, 1.2, id="gone"),
        pytest.param(0.1, 2.0, 9.0, id="a trace"),
        pytest.param(-0.1, 2.0, 9.0, id="taken off too much"),
    ],
)
def test_a_faint_outline_on_smooth_ground_is_seen(left: float, least: float, most: float) -> None:
    ground = np.random.default_rng(5).normal(120, 1, (clips.HEIGHT, clips.WIDTH)).astype(np.float32)
    ink = clips.coverage()
    bright = np.rint(ground + ink * np.float32(left * 130)).astype(np.uint8)
    views = [Sample(number, float(number), [bright, bright, bright]) for number in range(4)]
    matte = Matte(ink * np.float32(0.7), np.stack([ink * 180] * 3, 2), ink > 0.02, 1.0)
    assert least <= solving.embossed(views, LAYOUT, BOX, matte) <= most


def test_a_ghost_in_a_box_is_filled_in_or_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # W-08
    made = clips.make(tmp_path / "in.mp4", still=True)
    result = tmp_path / "out.mp4"
    order = Order(str(made.path), str(result), hints=(Hint(boxes=[(100, 95, 150, 45)]),))
    seen = iter((2.0, 1.0))
    monkeypatch.setattr(solving, "embossed", lambda *_: next(seen))
    report = process(order)
    assert (report.outcome, report.method) == (Outcome.REMOVED, Method.BOTH), report.reason
    monkeypatch.setattr(solving, "embossed", lambda *_: 2.0)
    report = process(order)
    assert (report.outcome, result.exists(), report.refused) == (Outcome.FAILED, False, FailureCode.MARK_REMAINS)
    assert report.check is not None
    assert report.check.held_back
    assert process(replace(order, accept_poor=True)).outcome is Outcome.REMOVED


def test_words_that_stay_belong_to_a_mark_and_bars_beside_the_picture_do_not() -> None:
    ink = clips.coverage() * np.float32(60)
    ink[136:] = -200  # a bar, right under the mark
    views = samples(ink)
    seen = clips.coverage() > 0.02
    seen[:, 150:] = False  # only the first letters
    there, sure = np.ones(len(views), np.bool_), np.ones(len(views))
    found = static_marks.Found(BOX, 1.0, templates.Presence(there, sure, sure), np.arange(len(views)))
    whole = solving.stays_with(np.ascontiguousarray(seen), found, views, LAYOUT)
    letters = cv2.dilate((clips.coverage() > 0.02).view(np.uint8), np.ones((9, 9), np.uint8)).view(np.bool_)
    assert whole[:, 160:].sum() > 0.5 * (clips.coverage()[:, 160:] > 0.5).sum()
    assert not (whole & ~letters).any()


def test_a_mark_that_jumps_is_not_handed_out_cleaned_in_one_place_alone(tmp_path: Path) -> None:
    known = clips.make(tmp_path / "known.mp4", strength=lambda number: float(number // 12 % 2))
    other = clips.make(tmp_path / "in.mp4", place=lambda number: clips.PLACE if number // 12 % 2 else (4, 40))
    seen = clips.detect(Order(str(known.path)), tmp_path)
    assert len(seen.candidates) == 1
    report = clips.remove(Order(str(other.path), str(tmp_path / "out.mp4")), tmp_path, seen)
    assert report.outcome is Outcome.FAILED
    assert report.check is not None
    assert (report.check.remains, "other places" in (report.reason or "")) == (True, True)
    assert report.refused is FailureCode.MARK_MOVES


def test_large_marks_and_many_frames_are_compared_in_bounded_memory(tmp_path: Path) -> None:
    facts = probe(str(clips.make(tmp_path / "in.mp4", still=True).path))
    plane = np.zeros((2160, 3840), np.uint8)
    views = [Sample(0, 0.0, [plane, plane, plane])] * 3
    steps, mask = static_marks.steps_in(views, (0, 2160, 0, 3840), np.ones(plane.shape, np.bool_), facts)
    assert {each.shape[:2] for each in steps} == {mask.shape}
    assert mask.size <= 310_000


@pytest.mark.parametrize(("strength", "fixed", "moving"), [(1.0, True, True), (0.6, True, False), (0.0, False, False)])
def test_what_moves_must_have_all_of_its_outline_to_be_certain(strength: float, fixed: bool, moving: bool) -> None:
    ink = clips.coverage()
    tint = np.stack([ink * np.float32(60), ink * 0, ink * 0], 2)
    eraser = Eraser(BOX, Matte(np.zeros_like(ink), tint, ink > 0.02, 1.0), LAYOUT)
    views = samples(ink * np.float32(60 * strength))
    which = np.arange(len(views))
    assert solving.stands_out(views, which, eraser) is fixed
    assert solving.stands_out(views, which, eraser, moves=True) is moving


@pytest.mark.parametrize(
    ("strength", "outcome"),
    [
        pytest.param(0.5, Outcome.REMOVED, id="weaker there, and taken off as strong as it is"),
        pytest.param(1.6, Outcome.FAILED, id="so strong there that some of it stays"),
    ],
)
def test_a_clip_is_as_clean_as_its_worst_shot(strength: float, outcome: Outcome, tmp_path: Path) -> None:  # W-08
    def of(number: int) -> float:
        return strength if number // clips.LENGTH == 3 else 1.0

    made = clips.make(tmp_path / "in.mp4", strength=of)
    result = tmp_path / "out.mp4"
    report = process(Order(str(made.path), str(result)))
    assert (report.outcome, result.exists()) == (outcome, outcome is Outcome.REMOVED), report.reason
    assert report.check is not None
    if outcome is Outcome.REMOVED:
        assert min(made.gained(result)) > 25
    else:
        assert (
            abs(report.check.residue_after) < 0.25 < (report.check.worst_shot or 0)
        )  # on average nothing is to be seen
        assert report.check.remains


def test_what_computing_leaves_is_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = clips.make(tmp_path / "in.mp4")
    result = tmp_path / "out.mp4"
    checked = checking.check
    tried: list[bool] = []

    def sees_it_at_first(*args: Any) -> tuple[Check, checking.Result]:
        check, written = checked(*args)
        tried.append(check.passed)
        if len(tried) == 1:
            check = replace(check, passed=False, remains=True, seen_again=Box(0, 0, 9, 9), seen_within=True)
        return check, written

    monkeypatch.setattr(checking, "check", sees_it_at_first)
    report = process(Order(str(made.path), str(result)))
    assert (report.outcome, report.method, len(tried)) == (Outcome.REMOVED, Method.BOTH, 2)


@pytest.mark.parametrize(
    "worse",
    [
        pytest.param(False, id="the last try"),
        pytest.param(True, id="the try before a worse one", marks=pytest.mark.slow),
    ],
)
def test_who_takes_a_result_as_it_is_gets_what_was_shown(
    worse: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # W-08
    made = clips.make(tmp_path / "in.mp4")
    checked = checking.check

    def never_good(*args: Any) -> tuple[Check, checking.Result]:
        check, written = checked(*args)
        check = replace(check, passed=False, reason="poor", remains=True)
        if args[4][0].filled:
            return replace(check, held_back=not worse), written
        return replace(check, held_back=True, seen_again=Box(0, 0, 9, 9), seen_within=True), written

    monkeypatch.setattr(checking, "check", never_good)
    result, shown, taken = (tmp_path / name for name in ("out.mp4", "shown.png", "taken.png"))
    order = Order(str(made.path), str(result), comparison=str(shown))
    refused = process(order)
    assert refused.check is not None
    assert (refused.outcome, result.exists(), refused.check.held_back) == (Outcome.FAILED, False, True)
    report = process(replace(order, comparison=str(taken), accept_poor=True))
    assert (report.outcome, report.method) == (Outcome.REMOVED, Method.COMPUTED if worse else Method.BOTH)
    assert report.check is not None
    assert report.check.remains
    assert result.exists()
    assert taken.read_bytes() == shown.read_bytes()

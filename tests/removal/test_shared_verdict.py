"""What is left of a mark that pictures have in common: it is told, and what can still be read is not handed out."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from PIL import Image

from headrace.removal import messages
from headrace.removal.images import shared_mark, shared_stages
from headrace.removal.images import stages as picture_stages
from headrace.removal.images.eye import detecting
from headrace.removal.images.eye.judging import MIN_SHOWN_SCORE
from headrace.removal.images.eye.model import MIN_SCORE, Detection
from headrace.removal.images.eye.plates import Box
from headrace.removal.images.views import matte_file, plated
from headrace.removal.images.views.solving import Guess, Matte
from headrace.removal.local import process_batch
from headrace.removal.order import FailureCode, Names, Order, RemovalOrder, Stage, StageOrder
from headrace.removal.report import Outcome, Verdict
from headrace.removal.thresholds import MIN_CLEAN_CONFIDENCE, MIN_CONFIDENCE
from tests.removal import clips

ALPHA = clips.coverage() * np.float32(clips.ALPHA)
MATTE = Matte(ALPHA, np.repeat(255 * ALPHA[..., None], 3, 2), ALPHA > 0, 1.0)


def marked(scene: clips.Picture) -> clips.Picture:
    alpha = ALPHA[..., None]
    picture: clips.Picture = np.rint(scene[:, : clips.WIDTH] * (1 - alpha) + 255 * alpha).astype(np.uint8)
    return picture


@pytest.mark.parametrize("strength", [pytest.param(1.0, marks=pytest.mark.slow), 0.7])
def test_a_shared_mark_that_leaves_a_trace_is_not_used(  # W-08
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, strength: float
) -> None:
    weak = replace(MATTE, alpha=MATTE.alpha * np.float32(strength), tint=MATTE.tint * np.float32(strength))
    monkeypatch.setattr(shared_mark, "_solved", lambda *_: weak)
    alone: list[object] = []

    def detect(picture: object, **how: object) -> Detection:
        alone.append(picture)
        return detecting.detect(picture, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(picture_stages, "detecting", SimpleNamespace(detect=detect))
    orders = []
    for number, scene in enumerate(clips.scenes(4)):
        source = tmp_path / f"{number}.png"
        Image.fromarray(marked(scene)).save(source)
        orders.append(Order(str(source), result=str(tmp_path / f"{number}.clean.png")))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    reports = process_batch(orders, lambda _: None, lambda: scratch)
    assert len(alone) == (0 if strength == 1 else 4)
    for order, report in zip(orders, reports, strict=True):
        assert report is not None
        assert order.result is not None
        assert (report.outcome is Outcome.REMOVED) is Path(order.result).exists()
        if strength == 1:
            assert report.verdict is Verdict.CLEAN
            assert report.facts["confidence"] >= MIN_CLEAN_CONFIDENCE


def test_a_result_in_which_the_mark_can_be_read_is_held_back_and_says_why(tmp_path: Path) -> None:  # W-08
    Image.fromarray(marked(clips.scenes(1)[0])).save(tmp_path / Names.SOURCE, format="png")
    matte_file.save(replace(MATTE, trust=0.76), 0.9, str(tmp_path / Names.MATTE))
    told = RemovalOrder(asset_id="a", sha256="0", format="png", units=1, output_format="png", batch_id="b")
    wanted = Order(str(tmp_path / Names.SOURCE), media="IMAGE")
    order = StageOrder(wanted, Stage.INPAINTING, str(tmp_path), earlier={"shared": True})
    report = picture_stages.inpaint(order, lambda _: None)
    assert (report.refused, report.keeps) == (FailureCode.POOR_RESULT, [Names.HELD_BACK])
    assert report.facts["confidence"] < MIN_CONFIDENCE
    said = messages.refusal(report, told).message
    assert said.startswith("24% of the mark can still be seen")
    assert "accept_poor" in said
    taken = picture_stages.inpaint(replace(order, order=replace(wanted, accept_poor=True)), lambda _: None)
    assert (taken.refused, taken.keeps) == (None, [Names.RESTORED])


def test_a_poor_result_is_one_of_little_confidence_and_says_what_is_left() -> None:
    taken = shared_mark.take_off(marked(clips.scenes(1)[0]), MATTE)
    assert not taken.needs_look
    assert taken.doubt is None
    outlined = replace(taken, left=0.25)
    assert MIN_CONFIDENCE <= outlined.confidence < MIN_CLEAN_CONFIDENCE
    assert outlined.doubt == "25% of the mark's outline stays"
    assert outlined.refused is None


def test_a_plate_and_the_words_on_it_are_told_apart() -> None:
    rng = np.random.default_rng(3)
    height, width, plate = 200, 300, Box(70, 130, 0, 300)
    words = np.zeros((height, width), np.uint8)
    cv2.putText(words, "PROOF", (60, 115), cv2.FONT_HERSHEY_DUPLEX, 1.6, 1, 9)
    ink = words.view(np.bool_)
    alpha, colour = np.zeros((height, width), np.float32), np.zeros((height, width), np.float32)
    alpha[plate.part] = 0.43
    alpha[ink], colour[ink] = 0.55, 255
    views = []
    for _ in range(4):
        noise = cv2.GaussianBlur(rng.normal(0, 1, (height, width, 3)).astype(np.float32), (0, 0), 12)
        soft = np.clip(120 + 40 * noise / noise.std(), 0, 255)
        views.append(np.rint(soft * (1 - alpha[..., None]) + (alpha * colour)[..., None]).astype(np.uint8))
    tight = alpha > 0
    seen = Guess(tight, tight, alpha * np.float32(0.8), np.repeat((0.8 * alpha * colour)[..., None], 3, 2))
    solved = plated.solve_plated(views, seen, [plate])
    inside = np.s_[80:120, 20:40]
    assert abs(float(solved.alpha[inside].mean()) - 0.43) < 0.03
    core = cv2.erode(words, np.ones((5, 5), np.uint8)).view(np.bool_)
    assert abs(float(np.median(solved.alpha[core])) - 0.55) < 0.05


def test_a_broken_picture_leaves_the_others_their_common_mark(tmp_path: Path) -> None:  # W-08
    """As the first of its group it ended the search: all others were done alone."""
    orders = []
    for number, scene in enumerate(clips.scenes(4)):
        source = tmp_path / f"{number}.png"
        Image.fromarray(marked(scene)).save(source)
        orders.append(Order(str(source), result=str(tmp_path / f"{number}.clean.png")))
    broken = tmp_path / "broken.jpg"
    Image.open(tmp_path / "0.png").save(broken)
    broken.write_bytes(broken.read_bytes()[:2000])  # with a whole header
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    orders = [Order(str(broken), result=str(tmp_path / "broken.clean.jpg")), *orders]
    reports = process_batch(orders, lambda _: None, lambda: scratch)
    assert [report is not None for report in reports] == [False, True, True, True, True]


@pytest.mark.parametrize(("views", "least"), [(7, MIN_SCORE), (8, MIN_SHOWN_SCORE)])
def test_eight_pictures_tell_a_mark_that_the_network_is_not_sure_of(  # W-03
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: int, least: float
) -> None:
    asked: list[float] = []

    def learn(pictures: list[object], *, least_score: float, **_: object) -> tuple[None, float]:
        assert len(pictures) == views
        asked.append(least_score)
        return None, 0.4

    monkeypatch.setattr(shared_stages, "learn", learn)
    picture = np.zeros((40, 50, 3), np.uint8)
    names = [f"view.{number}" for number in range(views - 1)]
    for name in names:
        Image.fromarray(picture).save(tmp_path / name, "PNG")
    order = StageOrder(Order("a.png", media="IMAGE"), Stage.DETECTING, str(tmp_path), views=names, same_mark=True)
    assert shared_stages.detect(order, picture, None, lambda _: None) is None
    assert asked == [least]

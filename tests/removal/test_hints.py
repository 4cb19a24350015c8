"""What somebody says about the mark, from the command line: heeded, or refused with what would be right."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from headrace.removal import runner
from headrace.removal.errors import CandidateUnknown, HintUnusable
from headrace.removal.images.comparison import blended
from headrace.removal.local import process
from headrace.removal.order import FailureCode, Hint, Order
from headrace.removal.report import Report
from headrace.removal.runner import carry_out
from tests.cli.conftest import Call, call

__all__ = ["call"]

Picture = NDArray[np.uint8]


@pytest.mark.long
def test_a_box_is_heeded_and_what_was_done_can_be_looked_at(call: Call, marked: Picture, tmp_path: Path) -> None:
    Image.fromarray(marked).save(tmp_path / "photo.png")
    words = ["--box", "0,100,320,250", "--save-mask", "mask.png", "--compare", "look.png", "--accept-poor", "--json"]
    done = call("remove", "photo.png", *words)
    assert done.code == 0, done.err
    assert json.loads(done.out)["needs_review"] is False
    changed = (np.asarray(Image.open(tmp_path / "photo.clean.png")) != marked).any(2)
    assert changed[100:350, :320].any()
    assert not changed[:, 320:].any()
    mask = np.asarray(Image.open(tmp_path / "mask.png"))
    assert mask[:, :320].max() == 255
    assert mask[:, 320:].max() == 0
    with Image.open(tmp_path / "look.png") as compared:
        assert compared.size == (3 * 640 + 2 * 8, 480)


def test_a_box_without_a_mark_is_not_answered_with_the_advice_to_draw_one(call: Call, tmp_path: Path) -> None:
    Image.new("RGB", (320, 240), "navy").save(tmp_path / "plain.png")
    assert "draw a box" in call("remove", "plain.png").err
    beside = call("remove", "plain.png", "--box", "10,10,40,20").err
    assert "No mark was found where you said it is." in beside
    assert "draw a box" not in beside


def test_hints_that_do_not_fit_the_picture_are_refused(marked: Picture, tmp_path: Path) -> None:
    photo, small = str(tmp_path / "photo.png"), str(tmp_path / "small.png")
    Image.fromarray(marked[::2, ::2]).save(photo)
    Image.fromarray(marked[:9, :9]).save(small)
    (tmp_path / "broken.png").write_bytes(b"no picture")
    wrong = {
        "outside the picture of 320 x 240": Order(photo, hints=(Hint(boxes=[(320, 0, 5, 5)]),)),
        "The mask has 9 x 9 pixels, the picture 320 x 240": Order(photo, mask=small),
        "The mask is not a picture that can be read": Order(photo, mask=str(tmp_path / "broken.png")),
    }
    for number, (why, order) in enumerate(wrong.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(HintUnusable, match=why):
            process(order, lambda _: None, lambda folder=folder: folder)  # type: ignore[misc]
    with pytest.raises(CandidateUnknown, match="no candidate 99"):
        carry_out(Order(photo, candidates=(99,)))  # told through the child, too


@pytest.mark.parametrize("box", ["1,2,3", "a,b,c,d", "-1,0,5,5", "0,0,0,5"])
def test_a_box_that_is_none_is_refused_by_name(call: Call, box: str) -> None:
    for option in ("--box", "--keep"):
        done = call("remove", "photo.png", option, box)
        assert done.code == 2
        assert "LEFT,TOP,WIDTH,HEIGHT" in done.err


def test_asking_is_told_with_what_to_say(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report({"score": 0.9}, refused=FailureCode.NEEDS_REVIEW, reason="Needs review: say --only")
    monkeypatch.setattr(runner, "carry_out", lambda *_, **__: report)
    done = call("remove", "p.jpg", "--json")
    assert done.code == 1
    assert json.loads(done.out)["needs_review"] is True
    assert "Needs review: say --only" in call("remove", "p.jpg").err


def test_more_or_less_of_the_change_is_made() -> None:
    before, after = (np.full((2, 2, 3), level, np.uint8) for level in (200, 100))
    assert blended(before, after, 0.5).tolist() == np.full((2, 2, 3), 150).tolist()
    assert blended(before, after, 1.1).tolist() == np.full((2, 2, 3), 90).tolist()
    assert blended(before, after, 0).tolist() == before.tolist()


def test_the_pages_of_a_hint_are_described() -> None:
    """That `hints[].pages` is a pair, the first page and the last, was said nowhere: `[2]` was refused."""
    described = Hint.model_json_schema()["properties"]["pages"]
    assert "both ends in" in described["description"]
    assert [each.get("minItems") for each in described["anyOf"]] == [2, None]

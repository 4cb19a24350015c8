"""Files of many kinds go in, the same kind comes out; what is no picture harms nobody."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from headrace.removal import pictures
from headrace.removal.errors import PictureUnreadable
from headrace.removal.pictures import Order, carry_out, limits
from tests.cli.conftest import Call, call

__all__ = ["call"]

Picture = NDArray[np.uint8]


def test_detect_and_remove_from_the_command_line(call: Call, marked: Picture, scene: Picture, tmp_path: Path) -> None:
    Image.fromarray(marked).save(tmp_path / "photo.png")
    seen = call("detect", "photo.png", "--mask", "mask.png", "--json")
    assert seen.code == 0
    assert '"regions"' in seen.out
    assert np.asarray(Image.open(tmp_path / "mask.png")).max() == 255
    done = call("remove", "photo.png")
    assert done.code == 0, done.err
    assert done.out.strip() == "photo.clean.png"
    clean = np.asarray(Image.open(tmp_path / "photo.clean.png")).astype(float)
    assert ((clean - scene) ** 2).mean() < ((marked.astype(float) - scene) ** 2).mean() / 3
    missing = call("detect", "nowhere.png")
    assert missing.code == 2
    assert "no file" in missing.err


@pytest.mark.parametrize(
    ("mode", "name"),
    [("L", "grey.png"), ("RGBA", "alpha.png"), ("CMYK", "cmyk.jpg"), ("P", "p.gif"), ("LAB", "lab.tif")],
)
def test_other_kinds_of_pixels(marked: Picture, tmp_path: Path, mode: str, name: str) -> None:
    Image.fromarray(marked[140:300]).convert(mode).save(tmp_path / name)  # little more than the mark
    report = carry_out(Order(str(tmp_path / name), result=str(tmp_path / ("clean-" + name))))
    assert report["width"] == 640
    if report["removed"]:
        with Image.open(tmp_path / ("clean-" + name)) as result:
            assert result.size == (640, 160)
            assert ("A" in result.getbands()) == (mode == "RGBA")
            assert (result.mode == "L") == (mode == "L")
    assert bool(report["notes"]) == (report["removed"] and mode in ("CMYK", "LAB"))


@pytest.mark.parametrize("poor", [False, True])
def test_a_poor_result_is_called_one(call: Call, monkeypatch: pytest.MonkeyPatch, poor: bool) -> None:
    report = {"score": 0.6, "regions": [{"left": 1, "top": 2, "width": 3, "height": 4}], "removed": True,
              "reason": None, "confidence": 0.1, "poor": poor, "computed": 5,
              "invented": 6, "notes": ["CMYK becomes RGB"]}  # fmt: skip
    monkeypatch.setattr(pictures, "carry_out", lambda _: report)
    for words in (["remove", "p.jpg"], ["remove", "p.jpg", "--json"]):
        done = call(*words)
        assert ("a poor result: look at it before you use it" in done.err) == poor
        assert "not as in the original: CMYK becomes RGB" in done.err
    assert json.loads(done.out)["poor"] is poor


def test_what_is_no_picture_is_named(tmp_path: Path) -> None:
    for content in (b"", b"\x89PNG\r\n\x1a\n broken", b"#!/bin/sh\n"):
        (tmp_path / "x.png").write_bytes(content)
        with pytest.raises(PictureUnreadable, match=r"x\.png"):
            carry_out(Order(str(tmp_path / "x.png")))


def test_more_threads_look_at_more_at_a_time_and_may_take_the_memory() -> None:
    spaces = [limits(threads).memory_bytes or 0 for threads in (1, 2, 3, 4, 8)]
    assert [space - spaces[0] for space in spaces] == [0, 0, 0, 1024**3, 3 * 1024**3]


def test_libraries_reserve_no_memory_for_every_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = tmp_path / "child"
    child.write_text('#!/bin/sh\necho "{\\"numbers\\": [$OPENBLAS_NUM_THREADS, $OPENCV_FOR_THREADS_NUM]}"\n')
    child.chmod(0o755)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "64")
    monkeypatch.setattr("sys.executable", str(child))
    (tmp_path / "any.png").write_bytes(b"any")
    assert carry_out(Order(str(tmp_path / "any.png"), threads=16)) == {"numbers": [2, 2]}


def test_the_child_that_opens_foreign_files_knows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_DATABASE_URL", "postgresql://u:hidden@127.0.0.1/x")
    assert not any(name.startswith("HEADRACE_") for name in pictures._environment())

"""Files of many kinds go in, the same kind comes out; what is no picture harms nobody."""

import contextlib
import json
import signal
import subprocess
from pathlib import Path

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray
from PIL import Image

from headrace.removal import runner
from headrace.removal.errors import PictureUnreadable
from headrace.removal.order import FailureCode, Order
from headrace.removal.report import Method, Outcome, Report, Verdict
from headrace.removal.runner import carry_out, limits_of, order_type
from headrace.tasks.isolation.environment import clean_environment
from tests.cli.conftest import Call, call
from tests.e2e.program import HEADRACE, environment, eventually, patience

__all__ = ["call"]

Picture = NDArray[np.uint8]


@pytest.mark.long
def test_detect_and_remove_from_the_command_line(call: Call, marked: Picture, scene: Picture, tmp_path: Path) -> None:
    Image.fromarray(marked).save(tmp_path / "photo.png")
    seen = call("detect", "photo.png", "--mask", "mask.png", "--json")
    assert seen.code == 0
    assert '"candidates"' in seen.out
    assert np.asarray(Image.open(tmp_path / "mask.png")).max() == 255
    done = call("remove", "photo.png", "--accept-poor")  # two specks of the word stay
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
    assert report.facts["width"] == 640
    assert report.facts["seconds"] > 0
    if report.outcome is Outcome.REMOVED:
        with Image.open(tmp_path / ("clean-" + name)) as result:
            assert result.size == (640, 160)
            assert ("A" in result.getbands()) == (mode == "RGBA")
            assert (result.mode == "L") == (mode == "L")
    assert bool(report.warnings) == (report.outcome is Outcome.REMOVED and mode in ("CMYK", "LAB"))


@pytest.mark.parametrize("poor", [False, True])
def test_a_poor_result_is_called_one(call: Call, monkeypatch: pytest.MonkeyPatch, poor: bool) -> None:
    verdict = Verdict.POOR if poor else Verdict.CLEAN
    facts = {"confidence": 0.1, "computed": 5, "invented": 6, "warnings": ["CMYK becomes RGB"], "verdict": verdict}
    monkeypatch.setattr(runner, "carry_out", lambda *_, **__: Report(facts))
    for words in (["remove", "p.jpg"], ["remove", "p.jpg", "--json"]):
        assert call(*words, "--accept-poor").code == 0
        done = call(*words)
        assert done.code == (8 if poor else 0)
        assert ("a poor result: check it before you use it" in done.err) == poor
        assert "not as in the original: CMYK becomes RGB" in done.err
    said = json.loads(done.out)
    assert (said["poor"], said["method"], said["to"]) == (poor, "both", "p.clean.jpg")


def test_what_is_no_picture_is_named(tmp_path: Path) -> None:
    odd = b"DDS " + (124).to_bytes(4, "little") + bytes(120)  # a kind that Pillow knows, in a form that it does not
    for content in (b"", b"\x89PNG\r\n\x1a\n broken", b"#!/bin/sh\n", odd):
        (tmp_path / "x.png").write_bytes(content)
        with pytest.raises(PictureUnreadable, match=r"x\.png"):
            carry_out(Order(str(tmp_path / "x.png")))


def test_more_threads_look_at_more_at_a_time_and_may_take_the_memory() -> None:
    spaces = [limits_of("IMAGE", threads).memory_bytes or 0 for threads in (1, 2, 3, 4, 8)]
    assert [space - spaces[0] for space in spaces] == [0, 0, 0, 1024**3, 3 * 1024**3]


def test_libraries_reserve_no_memory_for_every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "64")
    env = clean_environment(order_type(Order("p.png", threads=16)).environment)
    assert (env["OPENBLAS_NUM_THREADS"], env["OPENCV_FOR_THREADS_NUM"]) == ("2", "2")


@pytest.mark.parametrize(
    ("removed", "computed", "invented", "method"),
    [
        (True, 5, 0, Method.COMPUTED),
        (True, 0, 5, Method.INVENTED),
        (True, 1, 1, Method.BOTH),
        (False, 0, 0, None),
    ],
)
def test_the_report_says_where_the_pixels_come_from(
    removed: bool, computed: int, invented: int, method: Method | None
) -> None:
    facts = {"verdict": Verdict.LOOK, "computed": computed, "invented": invented}
    assert Report(facts, refused=None if removed else FailureCode.MARK_REMAINS).method is method


@pytest.mark.parametrize("accepted", [False, True])
def test_a_clips_order_says_whether_a_poor_result_is_accepted(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accepted: bool
) -> None:
    ordered: list[Order] = []

    def carry_out(order: Order, **_: object) -> Report:
        ordered.append(order)
        return Report(refused=FailureCode.NO_MARK, reason="nothing")

    monkeypatch.setattr(runner, "carry_out", carry_out)
    (tmp_path / "clip.mp4").write_bytes(b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41")
    call("remove", "clip.mp4", *(["--accept-poor"] if accepted else []))
    assert [order.accept_poor for order in ordered] == [accepted]


@pytest.mark.long
@pytest.mark.parametrize(
    "how", [signal.SIGINT, *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGTERM, signal.SIGHUP))]
)
def test_who_is_interrupted_leaves_no_process_and_no_part_of_a_file(tmp_path: Path, how: signal.Signals) -> None:
    rng = np.random.default_rng(1)
    Image.fromarray(rng.integers(0, 255, (3000, 4000, 3), np.uint8)).save(tmp_path / "large.png", compress_level=0)
    command = subprocess.Popen(
        [*HEADRACE, "remove", "large.png"],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        preexec_fn=_reset_signals,
        start_new_session=True,
    )
    try:
        process = psutil.Process(command.pid)
        family: list[psutil.Process] = []

        def at_work() -> bool:
            family[:] = process.children(recursive=True)
            with contextlib.suppress(psutil.NoSuchProcess):
                busy = any(sum(each.cpu_times()[:2]) > 1 for each in family)
                return busy and len(list(tmp_path.iterdir())) == 2
            return False

        assert eventually(at_work, within=patience(60))
        command.send_signal(how)
        _, err = command.communicate(timeout=60)
    finally:
        command.kill()
        command.wait()
    assert command.returncode == (130 if how is signal.SIGINT else 128 + how)
    assert b"Traceback" not in err
    assert eventually(lambda: all(map(_is_gone, family)), within=patience(10))
    assert [path.name for path in tmp_path.iterdir()] == ["large.png"]


def _reset_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.long
def test_the_work_says_how_far_it_is(marked: Picture, tmp_path: Path) -> None:
    Image.fromarray(marked).save(tmp_path / "photo.png")
    percents: list[int] = []
    carry_out(Order(str(tmp_path / "photo.png"), result=str(tmp_path / "out.png")), on_progress=percents.append)
    assert percents == sorted(percents)
    assert len(percents) > 2
    assert percents[-1] == 100

"""Marks on clips: found, taken off, and everything else kept. W-03"""

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.in_process import process
from headrace.removal.errors import CandidateUnknown, ClipUnreadable, EncoderMissing, HintUnusable, TargetUnusable
from headrace.removal.images.views.solving import Matte
from headrace.removal.media import media_of
from headrace.removal.order import END_SECONDS, Codec, FrameHint, Hint, Names, Order
from headrace.removal.report import Method, Outcome
from headrace.removal.runner import carry_out
from headrace.removal.video import checking, marks_file, solving
from headrace.removal.video.encoders import codec_for
from headrace.removal.video.frame_removal import Eraser
from headrace.removal.video.model import Kind
from headrace.removal.video.probing import Facts, probe
from headrace.removal.video.sampling import sample
from tests.cli.conftest import Call, call
from tests.removal import clips

__all__ = ["call"]
BOX = (100, 95, 150, 45)


def nothing(_percent: int) -> None:
    pass


def test_a_mark_goes_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:  # W-03
    made = clips.make(tmp_path / "in.mp4", uneven=True, turned=90)
    result = tmp_path / "out.mp4"
    told: list[int] = []
    report = process(Order(str(made.path), str(result)), told.append)
    assert (report.outcome, report.method) == (Outcome.REMOVED, Method.COMPUTED)
    assert report.candidates[0].kind == Kind.FIXED
    assert report.check is not None
    assert report.check.residue_after < 0.1
    assert told == sorted(told)
    assert told[-1] == 100
    after = clips.frames(result)
    gained = [clips.inside(frame, clean, made.mask) for frame, clean in zip(after, made.clean, strict=True)]
    assert np.mean(gained) > 30
    assert clips.stamps(result) == clips.stamps(made.path)
    assert clips.packets(result, "audio") == clips.packets(made.path, "audio")
    before, now = probe(str(made.path)), probe(str(result))
    assert (now.matrix, now.rotation, now.codec) == (before.matrix, 90, "h264")
    left, top, width, height = report.candidates[0].box  # as it is shown: upright
    assert (width < height, left + width <= clips.HEIGHT, top + height <= clips.WIDTH) == (True, True, True)


def test_looking_and_removing_are_two_stages_with_a_file_between(tmp_path: Path) -> None:
    made = clips.make(tmp_path / "in.mkv")
    kept, result = tmp_path / "marks.npz", tmp_path / "out.mkv"
    overlay = tmp_path / "seen.png"
    seen = clips.detect(Order(str(made.path), overlay=str(overlay)), tmp_path)
    with Image.open(overlay) as drawn:
        assert drawn.size == (clips.WIDTH, clips.HEIGHT)
    assert [each.candidate for each in marks_file.load(str(kept))] == list(seen.candidates)
    order = Order(str(made.path), str(result), codec=Codec.AV1)
    report = clips.remove(order, tmp_path, seen)
    assert (report.outcome, report.facts["codec"]) == (Outcome.REMOVED, "av1")
    assert clips.packets(result, "subtitle") == clips.packets(made.path, "subtitle") != []
    assert clips.stamps(result) == clips.stamps(made.path)
    assert (tmp_path / Names.SIDES).exists()
    with pytest.raises(HintUnusable):
        marks_file.load(str(made.path))
    with pytest.raises(CandidateUnknown):
        clips.detect(Order(str(made.path), candidates=(7,)), tmp_path)


def test_a_clip_without_a_mark_is_left_alone(tmp_path: Path) -> None:
    made = clips.make(tmp_path / "in.mp4", marked=False)
    result = tmp_path / "out.mp4"
    report = process(Order(str(made.path), str(result)))
    assert (report.outcome, report.candidates, result.exists()) == (Outcome.NO_MARK, (), False)


def test_what_somebody_says_is_taken_off_and_what_is_kept_stays(tmp_path: Path) -> None:
    made = clips.make(tmp_path / "in.mp4")
    result = tmp_path / "out.webm"
    hint = Hint(boxes=[(100, 95, 150, 45)], keep=[(110, 95, 60, 45)])
    order = Order(str(made.path), str(result), mode="MANUAL", hints=(hint,))
    report = process(order, nothing)
    assert (report.outcome, report.facts["codec"]) == (Outcome.REMOVED, "vp9")
    frame, was = clips.frames(result)[20], clips.frames(made.path)[20]
    stays, goes = made.mask.copy(), made.mask.copy()
    stays[:, 168:], goes[:, :174] = False, False
    assert clips.inside(frame, was, stays) > 25
    assert clips.inside(frame, made.clean[20], goes) > 25
    with pytest.raises(HintUnusable):
        process(Order(str(made.path), str(result), hints=(Hint(boxes=[(900, 0, 5, 5)]),)))


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(lambda number: (4 + 2 * number, 40 + 2 * number), id="moves"),
        pytest.param(
            lambda number: ((4, 40), (112, 128), (100, 50))[number // 4 % 3], id="jumps", marks=pytest.mark.slow
        ),
        pytest.param(lambda number: ((-12, 40), (100, 128), (80, 50))[number // 4 % 3], id="jumps, cut off at a side"),
    ],
)
def test_a_mark_is_followed_over_the_picture(place: clips.Place, tmp_path: Path) -> None:  # W-03
    made = clips.make(tmp_path / "in.mp4", place=place)
    result = tmp_path / "out.mp4"
    seen = clips.detect(Order(str(made.path)), tmp_path)
    assert [each.kind for each in seen.candidates] == [Kind.MOVING]
    report = clips.remove(Order(str(made.path), str(result)), tmp_path, seen)
    assert (report.outcome, report.removed) == (Outcome.REMOVED, (1,)), report.reason
    assert np.mean(made.gained(result)) > 29
    assert min(made.gained(result)) > 20  # nowhere is it overlooked


def test_a_mark_that_fades_is_taken_off_as_strong_as_it_is(tmp_path: Path) -> None:
    made = clips.make(tmp_path / "in.mp4", strength=lambda number: 0.5 + 0.5 * float(np.sin(number / 4)))
    result = tmp_path / "out.mp4"
    report = process(Order(str(made.path), str(result)))
    assert (report.outcome, report.candidates[0].kind) == (Outcome.REMOVED, Kind.FADING)
    assert np.mean(made.gained(result)) > 29


@pytest.mark.parametrize("when", [{"seconds": (1.2, 2.4)}, {"frames": (15, 29)}])
def test_at_other_times_than_were_said_nothing_changes(when: dict[str, Any], tmp_path: Path) -> None:  # W-03
    made = clips.make(tmp_path / "in.mp4")
    result = tmp_path / "out.mp4"
    report = process(Order(str(made.path), str(result), mode="MANUAL", hints=(FrameHint(boxes=[BOX], **when),)))
    assert (report.outcome, report.candidates[0].seconds) == (Outcome.REMOVED, ((1.2, 2.4),)), report.reason
    was, gained = clips.frames(made.path), made.gained(result)
    stays = [clips.inside(frame, was[number], made.mask) for number, frame in enumerate(clips.frames(result))]
    assert [number for number, each in enumerate(stays) if each < 28] == list(range(15, 30))
    assert np.mean(gained[15:30]) > 27
    for wrong in ({"seconds": (90, END_SECONDS)}, {"frames": (480, 500)}, {"seconds": (2, 1)}):
        with pytest.raises(HintUnusable):
            process(Order(str(made.path), str(result), hints=(FrameHint(boxes=[BOX], **wrong),)))


def test_only_what_the_written_file_shows_is_a_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # W-08
    made = clips.make(tmp_path / "in.mp4")
    result = tmp_path / "out.mp4"
    seen = clips.detect(Order(str(made.path)), tmp_path)
    order = Order(str(made.path), str(result))

    def late(facts: Facts) -> Facts:
        return replace(facts, stamps=(*facts.stamps[:-1], facts.stamps[-1] + 700))

    with monkeypatch.context() as patched:
        patched.setattr(checking, "probe", lambda path: late(probe(path)))
        report = clips.remove(order, tmp_path, seen)
    assert (report.outcome, report.removed) == (Outcome.FAILED, ())
    assert report.check is not None
    assert (report.check.remains, "another time" in str(report.reason)) == (False, True)

    def spoil(percent: int) -> None:
        if percent >= 22:  # the way is chosen, and nothing is written yet
            monkeypatch.setattr(Eraser, "erase", lambda *_: None)

    report = clips.remove(order, tmp_path, seen, spoil)
    assert (report.outcome, report.removed) == (Outcome.FAILED, ())
    assert report.check is not None
    assert (report.check.remains, report.check.residue_after > 0.8) == (True, True)


def test_what_no_frame_shows_is_no_mark(tmp_path: Path) -> None:
    cover = clips.coverage()
    tint = cover[..., None] * np.array((235 * clips.ALPHA, 128 * clips.ALPHA, 128 * clips.ALPHA), np.float32)
    matte = Matte(cover * np.float32(clips.ALPHA), tint, cover > 0.02, 1.0)
    shown = {}
    for marked in (True, False):
        facts = probe(str(clips.make(tmp_path / f"{marked}.mp4", marked=marked).path))
        samples = sample(facts, lambda _: None)
        eraser = Eraser((0, clips.HEIGHT, 0, clips.WIDTH), matte, facts.layout)
        shown[marked] = solving.stands_out(samples, np.arange(len(samples)), eraser)
    assert shown == {True: True, False: False}


def test_the_command_takes_a_box_with_its_time(call: Call, tmp_path: Path) -> None:
    made = clips.make(tmp_path / "in.mp4")
    picture = tmp_path / "photo.png"
    Image.fromarray(made.clean[0]).save(picture)
    for box, file, says in (
        ("100,95,150,45@1.2-2.4", picture, "only clips have a time"),
        ("100,95,150,45@soon", made.path, "is no time"),
        ("100,95,150,45@90-", made.path, "the clip lasts"),
    ):
        said = call("remove", str(file), "--box", box, "--json")
        assert (said.code != 0, says in " ".join((said.out + said.err).split())) == (True, True), said
    done = call("remove", str(made.path), "--box", "100,95,150,45@15f-29f", "--json")
    report = json.loads(done.out)
    assert (report["outcome"], report["candidates"][0]["seconds"]) == ("removed", [[1.2, 2.4]])


class Stopped(Exception):
    pass


def test_the_work_ends_when_progress_says_so(tmp_path: Path) -> None:
    made = clips.make(tmp_path / "in.mp4")

    def stop(percent: int) -> None:
        if percent > 40:
            raise Stopped

    with pytest.raises(Stopped):
        process(Order(str(made.path), str(tmp_path / "out.mp4")), stop)


def test_damaged_clips_are_named(tmp_path: Path) -> None:
    made = clips.make(tmp_path / "in.mp4")
    whole = made.path.read_bytes()
    for number, bytes_ in enumerate(
        (whole[:200], whole[: len(whole) // 2], b"\x00\x00\x00\x18ftypisom" + b"\xff" * 5000)
    ):
        broken = tmp_path / f"{number}.mp4"
        broken.write_bytes(bytes_)
        with pytest.raises(ClipUnreadable):
            process(Order(str(broken), str(tmp_path / "out.mp4")))
    noise = bytearray(whole)
    rng = np.random.default_rng(1)
    for place in rng.integers(len(whole) // 4, len(whole) * 3 // 4, 40):
        noise[place] ^= 0xFF
    (tmp_path / "noisy.mp4").write_bytes(noise)
    with contextlib.suppress(ClipUnreadable):
        process(Order(str(tmp_path / "noisy.mp4"), str(tmp_path / "out.mp4")))


@pytest.mark.parametrize(
    ("codec", "container", "chosen"),
    [("h264", "mp4", "h264"), ("mpeg4", "mp4", "av1"), ("mpeg4", "mov", "h264"), ("av1", "mov", "h264"),
     ("h264", "webm", "vp9"), ("av1", "webm", "av1"), ("hevc", "mkv", "av1")],
)  # fmt: skip
def test_the_codec_is_one_that_the_file_can_hold(codec: str, container: str, chosen: str, tmp_path: Path) -> None:
    facts = replace(probe(str(clips.make(tmp_path / "in.mp4", still=True).path)), codec=codec)
    assert codec_for(facts, Codec.AUTO, container)[0] == chosen
    if container == "mov":
        with pytest.raises(EncoderMissing):
            codec_for(facts, Codec.VP9, container)


def test_clips_are_told_by_their_content(tmp_path: Path) -> None:
    for name, head, is_one in (
        ("a", b"\x00\x00\x00\x20ftypisom", True),
        ("b", b"\x00\x00\x00\x20ftypheic", False),
        ("c", b"\x1a\x45\xdf\xa3rest", True),
        ("d", b"\xff\xd8\xff\xe0JFIF", False),
        ("e", b"", False),
    ):
        (tmp_path / name).write_bytes(head)
        assert (media_of(tmp_path / name) == "VIDEO") is is_one
    assert media_of(tmp_path) == "IMAGE"


def test_remove_takes_clips_from_the_command_line(call: Call, tmp_path: Path) -> None:
    made = clips.make(tmp_path / "in.mp4")
    (tmp_path / "broken.mp4").write_bytes(made.path.read_bytes()[:300])
    target = tmp_path / "clean"
    target.mkdir()
    result = call("remove", str(made.path), str(tmp_path / "broken.mp4"), "-o", str(target), "--preview", "--json")
    done, failed = json.loads(result.out)
    assert (done["outcome"], done["to"], failed["error"]) == ("removed", str(target / "in.mp4"), "clip_unreadable")
    assert "Errno" not in result.out + result.err
    assert {each.name for each in target.iterdir()} == {"in.mp4", "in.preview.png"}
    with pytest.raises(TargetUnusable):
        carry_out(Order(str(made.path), str(tmp_path / "out.jpg")))

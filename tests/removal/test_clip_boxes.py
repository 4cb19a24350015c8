"""A box around the mark of a clip: it must find what is found without it."""

from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

from benchmarks.in_process import process
from headrace.removal.messages import refusal
from headrace.removal.order import FailureCode, Hint, Order, RemovalOrder
from headrace.removal.report import Outcome, Report
from headrace.removal.video import candidates, static_marks

WIDTH, HEIGHT, SHOTS, LENGTH = 480, 270, 5, 20
FROM_HINTS = static_marks.from_hints
AROUND = (300, 0, 180, 90)  # of the mark, which is at 346, 23 and about 105 x 24 large


def make(path: Path) -> Path:
    """A clip of some shots with grain, strongly compressed, with a mark at its upper right."""
    rng = np.random.default_rng(268)
    ink = np.zeros((HEIGHT, WIDTH), np.uint8)
    cv2.putText(ink, "SAMPLE", (346, 44), cv2.FONT_HERSHEY_DUPLEX, 0.9, 255, 3, cv2.LINE_AA)
    alpha = ink[..., None].astype(np.float32) / np.float32(255 / 0.4)
    size = (WIDTH + 60, HEIGHT)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.options = {"crf": "35", "preset": "veryfast"}
        for _ in range(SHOTS):
            soft = cv2.resize(rng.uniform(20, 230, (9, 16, 3)).astype(np.float32), size, interpolation=cv2.INTER_CUBIC)
            grain = rng.normal(0, 25, (size[1] // 2, size[0] // 2, 3)).astype(np.float32)
            shot = soft + cv2.resize(grain, size)
            for number in range(LENGTH):
                frame = np.clip(shot[:, 3 * number : 3 * number + WIDTH], 0, 255)
                over = np.rint(frame * (1 - alpha) + 255 * alpha).astype(np.uint8)
                picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(over), format="rgb24")
                container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return path


def boxed(source: Path, box: tuple[int, int, int, int], result: Path | None = None) -> Order:
    written = None if result is None else str(result)
    return Order(str(source), written, mode="MANUAL", hints=(Hint(boxes=[box]),))


def nothing(_percent: int) -> None:
    pass


@pytest.mark.long
def test_a_box_around_a_mark_that_auto_finds_finds_it_too(tmp_path: Path) -> None:
    """NO_MARK for a box around a mark that AUTO removes: nothing could be solved from what is seen in the box."""
    source = make(tmp_path / "in.mp4")
    (auto,) = process(Order(str(source))).candidates
    report = process(boxed(source, AROUND))
    (found,) = report.candidates
    # The drawn box itself, where the mark can be solved from what is seen in it.
    assert found.box in (auto.box, AROUND)
    assert found.certain
    left, top, width, height = auto.box
    assert AROUND[0] <= left < left + width <= AROUND[0] + AROUND[2]
    assert AROUND[1] <= top < top + height <= AROUND[1] + AROUND[3]
    # A box elsewhere gets no mark from outside of it.
    elsewhere = process(boxed(source, (0, 180, 120, 60), tmp_path / "out.mp4"))
    assert auto.box not in [each.box for each in elsewhere.candidates]


@pytest.mark.slow
def test_of_several_marks_a_box_takes_those_inside_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = make(tmp_path / "in.mp4")
    found = candidates.find
    monkeypatch.setattr(static_marks, "from_hints", _unsolvable)
    calls: list[int] = []

    def counted(*args: object, **kwargs: object) -> object:
        calls.append(1)
        return found(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(candidates, "find", counted)
    assert len(process(boxed(source, (340, 10, 120, 50))).candidates) == 1
    outside = process(boxed(source, (0, 180, 120, 60), tmp_path / "out.mp4"))
    assert (outside.outcome, outside.candidates) == (Outcome.NO_MARK, ())
    assert len(calls) == 2


def _unsolvable(*args: Any, **kwargs: Any) -> list[static_marks.Found]:
    """Boxes of which nothing can be told."""
    found = FROM_HINTS(*args, **kwargs)
    for each in found:
        each.score = 0.0
    return found


@pytest.mark.parametrize("hint", [Hint(boxes=[(1, 2, 3, 4)]), Hint(polygons=[[(0, 0), (9, 0), (9, 9)]])])
def test_who_drew_a_box_is_not_advised_to_draw_a_box(hint: Hint) -> None:
    common: dict[str, Any] = {
        "asset_id": "ast_1",
        "sha256": "0" * 64,
        "format": "mp4",
        "units": 1,
        "output_format": "mp4",
    }
    missing = Report(refused=FailureCode.NO_MARK)
    assert "MANUAL" in refusal(missing, RemovalOrder(**common)).message
    told = refusal(missing, RemovalOrder(**common, mode="MANUAL", hints=[hint])).message
    assert "order MANUAL" not in told
    assert "mask" in told

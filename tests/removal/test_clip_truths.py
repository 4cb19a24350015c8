"""What a clip's result is held to: labels of AI content stay, and text that scrolls is gone whole."""

import tracemalloc
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from headrace.removal.images import reading
from headrace.removal.report import Box, Candidate
from headrace.removal.video import label_texts, scrolling
from headrace.removal.video.label_texts import with_label_texts
from headrace.removal.video.probing import Facts, probe
from headrace.removal.video.sampling import Sample, sample
from tests.removal import clips

LINE = Box(30, 100, 190, 26)


def sampled(path: Path) -> tuple[Facts, list[Sample]]:
    facts = probe(str(path))
    return facts, sample(facts, lambda _: None)


def written(path: Path, text: str, *, turned: int = 0) -> Path:
    """A clip with a line of text in one place; ``turned`` is stored on its side and shown upright."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(25, 2))
        stream.pix_fmt, stream.options = "yuv420p", {"crf": "16", "preset": "ultrafast"}
        stream.width, stream.height = (clips.HEIGHT, clips.WIDTH) if turned else (clips.WIDTH, clips.HEIGHT)
        if turned:
            stream.set_display_rotation(turned)
        for scene in clips.scenes(4):
            picture = Image.fromarray(np.ascontiguousarray(scene[:, : clips.WIDTH]) // 2)
            ImageDraw.Draw(picture).text(LINE[:2], text, font=ImageFont.load_default(24), fill="white")
            stored = np.rot90(np.asarray(picture), -turned // 90)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(stored), format="rgb24")))
        container.mux(stream.encode(None))
    return path


@pytest.mark.skipif(
    not reading.is_available(), reason="the reader's weights are not here: scripts/weights fetches them"
)
@pytest.mark.parametrize("turned", [0, 90])
def test_a_clip_s_label_of_ai_content_is_read(turned: int, tmp_path: Path) -> None:
    found = (Candidate(1, "fixed", "text", 0.9, True, LINE, seconds=((0.0, 1.0),)),)
    for text, read in (("AI-generated", True), ("Anna Stein", False)):
        facts, samples = sampled(written(tmp_path / f"{text}.mp4", text, turned=turned))
        (candidate,) = with_label_texts(facts, samples, found)
        assert (candidate.text is not None) is read


def test_of_each_frame_only_the_label_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve whole frames of an 8K clip, and their mean, would take 3.4 GB of the child's eight."""
    frame = np.zeros((1000, 2000, 3), np.uint8)
    read: list[tuple[tuple[int, ...], Box]] = []

    def read_line(picture: np.ndarray[Any, Any], box: Box) -> tuple[str, ...]:
        read.append((picture.shape, box))
        return ()

    monkeypatch.setattr(reading, "is_available", lambda: True)
    monkeypatch.setattr(reading, "read_line", read_line)
    monkeypatch.setattr(label_texts, "upright", lambda *_: frame.copy())
    samples: Any = [SimpleNamespace(seconds=float(at)) for at in range(20)]
    facts: Any = None
    tracemalloc.start()
    try:
        with_label_texts(facts, samples, (Candidate(1, "fixed", "text", 0.9, True, LINE, seconds=((0.0, 20.0),)),))
        assert tracemalloc.get_traced_memory()[1] < 2 * frame.nbytes
    finally:
        tracemalloc.stop()
    assert read == [((78, 242, 3), Box(26, 26, 190, 26))] * 4


def test_text_that_still_scrolls_through_the_result_is_seen() -> None:  # W-08
    """Of a line longer than what was followed the rest stayed, and the result was called clean."""
    facts: Any = SimpleNamespace(width=640, height=360)
    inner = (300, 330, 200, 300)
    lying, rising, resting = (
        SimpleNamespace(path=tuple((0.1 * at, down * at, across * at) for at in range(40)), inner=inner)
        for down, across in ((0, -10), (-7, 0), (0, 0))
    )
    assert scrolling.strip_of(lying, facts) == (285, 345, 0, 640)  # type: ignore[arg-type]
    assert scrolling.strip_of(rising, facts) == (0, 360, 150, 350)  # type: ignore[arg-type]
    assert scrolling.strip_of(resting, facts) is None  # type: ignore[arg-type]


def test_a_strip_is_clean_when_most_of_its_text_is_gone(tmp_path: Path) -> None:
    marked = clips.make(tmp_path / "marked.mp4", place=lambda number: (200 - 8 * number, 128), strength=lambda _: 1.6)
    facts, samples = sampled(marked.path)
    path = tuple((each.seconds, 0, -round(100 * each.seconds)) for each in samples)
    mark: Any = SimpleNamespace(path=path, inner=(100, 132, 200, 240))
    cleaned = clips.make(tmp_path / "clean.mp4", marked=False)
    for result, left in ((marked.path, True), (cleaned.path, False)):
        other, after = sampled(result)
        assert scrolling.is_left(mark, facts, samples, other, after, 2, lambda: None) is left

"""Tiny clips, made here: soft pictures that change, a mark over them, a tone and subtitles beside them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal import stages
from headrace.removal.order import Order, Progress, Stage, StageOrder
from headrace.removal.report import Report

Picture = NDArray[np.uint8]
WIDTH, HEIGHT, SHOTS, LENGTH = 256, 144, 8, 6
ALPHA = 0.5
BASE = Fraction(1, 12800)
PLACE = (112, 128)
Place = Callable[[int], tuple[int, int]]  # of the mark, by the frame's number
Strength = Callable[[int], float]


def scenes(count: int = SHOTS, *, seed: int = 7) -> list[Picture]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        size = (WIDTH + 2 * LENGTH, HEIGHT)
        soft = cv2.resize(rng.uniform(20, 210, (5, 9, 3)).astype(np.float32), size, interpolation=cv2.INTER_CUBIC)
        fine = cv2.resize(rng.normal(0, 12, (HEIGHT // 3, WIDTH // 3, 3)).astype(np.float32), size)
        found.append(np.clip(soft + fine, 0, 255).astype(np.uint8))
    return found


def coverage(at: tuple[int, int] = PLACE) -> NDArray[np.float32]:
    ink = np.zeros((HEIGHT, WIDTH), np.uint8)
    cv2.putText(ink, "SAMPLE", at, cv2.FONT_HERSHEY_DUPLEX, 1.1, 255, 3, cv2.LINE_AA)
    return ink.astype(np.float32) / np.float32(255)


@dataclass(frozen=True)
class Made:
    path: Path
    clean: list[Picture]
    mask: NDArray[np.bool_]
    stamps: list[int]
    masks: list[NDArray[np.bool_]]  # of each frame, where the mark moves

    def gained(self, result: Path) -> list[float]:
        """PSNR inside the mark, of each frame of the result."""
        return [
            inside(frame, clean, mask)
            for frame, clean, mask in zip(frames(result), self.clean, self.masks, strict=True)
        ]


def make(
    path: Path, *, marked: bool = True, uneven: bool = False, turned: int = 0, still: bool = False,
    place: Place = lambda _: PLACE, strength: Strength = lambda _: 1.0,
) -> Made:  # fmt: skip
    """A clip with sound; in Matroska with subtitles, too."""
    pictures = [
        scene[:, 2 * number : 2 * number + WIDTH] for scene in scenes(1 if still else SHOTS) for number in range(LENGTH)
    ]
    if still:
        pictures = [pictures[0]] * 12
    stamps, moment = [], 0
    for number in range(len(pictures)):
        stamps.append(moment)
        moment += 1024 * (1 + (uneven and number % 3 == 0))
    with av.open(str(path), "w") as container:
        picture = container.add_stream("libx264", rate=Fraction(25, 2))
        picture.width, picture.height, picture.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        picture.time_base = picture.codec_context.time_base = BASE
        picture.options = {"crf": "16", "preset": "ultrafast"}
        if turned:
            picture.set_display_rotation(turned)
        sound = container.add_stream("aac", rate=48_000, layout="mono")
        words = container.add_mux_stream("subrip") if path.suffix == ".mkv" else None
        if words is not None:
            words.time_base = Fraction(1, 1000)
            words.metadata["language"] = "fin"
        for number, (each, stamp) in enumerate(zip(pictures, stamps, strict=True)):
            alpha = coverage(place(number))[..., None] * np.float32(ALPHA * strength(number) * marked)
            over = np.rint(each * (1 - alpha) + 255 * alpha).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(over), format="rgb24")
            frame.pts, frame.time_base = stamp, BASE
            container.mux(picture.encode(frame))
            tone = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32) + 0.01 * number, "fltp", "mono")
            tone.sample_rate, tone.pts, tone.time_base = 48_000, number * 1024, Fraction(1, 48_000)
            container.mux(sound.encode(tone))
            if words is not None and number % 10 == 0:
                line = av.Packet(b"Hei, maailma")
                line.stream, line.time_base = words, Fraction(1, 1000)
                line.pts = line.dts = number * 80
                line.duration = 400
                container.mux(line)
        container.mux(picture.encode(None))
        container.mux(sound.encode(None))
    masks = [coverage(place(number)) > 0.02 for number in range(len(pictures))]
    return Made(path, [np.ascontiguousarray(each) for each in pictures], coverage() > 0.02, stamps, masks)


def frames(path: Path) -> list[Picture]:
    with av.open(str(path)) as container:
        return [_rgb(frame) for frame in container.decode(container.streams.video[0])]


def _rgb(frame: av.VideoFrame) -> Picture:
    return frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False)


def packets(path: Path, kind: str) -> list[tuple[int | None, bytes]]:
    """Of every track of a kind: when, and what."""
    with av.open(str(path)) as container:
        tracks = [stream for stream in container.streams if stream.type == kind]
        return [(packet.pts, bytes(packet)) for packet in container.demux(tracks) if packet.size] if tracks else []


def stamps(path: Path) -> list[float]:
    """When each frame is shown, in seconds since the first."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        found = sorted(packet.pts for packet in container.demux(stream) if packet.size and packet.pts is not None)
        assert stream.time_base is not None
        return [round(float((each - found[0]) * stream.time_base), 3) for each in found]


def inside(picture: Picture, clean: Picture, mask: NDArray[np.bool_]) -> float:
    """PSNR inside the mask."""
    wrong = (picture[mask].astype(np.float64) - clean[mask]) ** 2
    return float(10 * np.log10(255**2 / wrong.mean()))


def detect(order: Order, folder: Path) -> Report:
    """The stage by itself, which leaves its marks in the folder."""
    return stages.run(StageOrder(replace(order, media="VIDEO"), Stage.DETECTING, str(folder)), lambda _: None)


def remove(order: Order, folder: Path, seen: Report, progress: Progress = lambda _: None) -> Report:
    """The stage that goes on from there, as another process does."""
    wanted = replace(order, media="VIDEO")
    return stages.run(StageOrder(wanted, Stage.INPAINTING, str(folder), dict(seen.facts)), progress)

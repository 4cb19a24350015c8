"""Clips for the removal benchmark: photographs under a moving camera, cut together, with marks over them and a tone.

The truth is not stored: ``frames`` gives the clean clip again, frame by frame.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
from av.video.frame import PictureType
from numpy.typing import NDArray

from benchmarks.eye_marks import Mark, ink, placed

Picture = NDArray[np.uint8]
RATE = 30
Marks = Callable[[int], Mark | None]  # of each frame, by its number


@dataclass(frozen=True)
class Film:
    photos: list[Picture]
    width: int = 1280
    height: int = 720
    shots: int = 12
    frames: int = 180
    seed: int = 17

    def clean(self) -> Iterator[Picture]:
        """The frames without a mark."""
        rng = np.random.default_rng(self.seed)
        for shot in range(self.shots):
            photo = self.photos[shot % len(self.photos)]
            scale = max(self.width / photo.shape[1], self.height / photo.shape[0]) * rng.uniform(1.15, 1.4)
            ways = rng.uniform(-1, 1, 2)
            zoom = rng.uniform(-0.06, 0.06)
            begins, ends = (round(self.frames * number / self.shots) for number in (shot, shot + 1))
            room = np.array([photo.shape[1] * scale - self.width, photo.shape[0] * scale - self.height]) / 2
            for number in range(ends - begins):
                part = number / max(1, ends - begins - 1)
                at = scale * (1 + zoom * part)
                offset = room * (1 + ways * (part - 0.5) * min(1.0, (ends - begins) / 60))
                matrix = np.array([[at, 0, -offset[0]], [0, at, -offset[1]]], np.float32)
                flags = cv2.INTER_LINEAR if at > 1 else cv2.INTER_AREA
                yield cv2.warpAffine(
                    photo, matrix, (self.width, self.height), flags=flags, borderMode=cv2.BORDER_REFLECT_101
                )  # type: ignore[misc]


def write(
    film: Film, path: Path, mark: Marks, *, codec: str = "libx264", options: dict[str, str] | None = None
) -> None:
    """The marked clip, with a tone beside it."""
    with av.open(str(path), "w") as container:
        track = container.add_stream(codec, rate=RATE)
        track.width, track.height, track.pix_fmt = film.width, film.height, "yuv420p"
        track.options = options or {"crf": "20", "preset": "veryfast"}
        sound = container.add_stream("aac", rate=48_000, layout="mono")
        for number, picture in enumerate(film.clean()):
            over = mark(number)
            frame = av.VideoFrame.from_ndarray(picture if over is None else over.over(picture), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            container.mux(track.encode(frame))
            container.mux(sound.encode(_tone(number)))
        container.mux(track.encode(None))
        container.mux(sound.encode(None))


def pack_again(source: Path, target: Path) -> None:
    """The same frames, decoded and encoded as removal does it, and nothing else done to them."""
    with av.open(str(source)) as read, av.open(str(target), "w") as container:
        picture = read.streams.video[0]
        picture.thread_type = "AUTO"
        track = container.add_stream("libx264", rate=RATE)
        track.width, track.height, track.pix_fmt = picture.width, picture.height, "yuv420p"
        track.bit_rate = picture.bit_rate or 4_000_000
        track.codec_context.thread_count = 2
        track.options = {"preset": "veryfast"}
        for frame in read.decode(picture):
            frame.pict_type = PictureType.NONE
            container.mux(track.encode(frame))
        container.mux(track.encode(None))


def _tone(number: int) -> av.AudioFrame:
    count = 48_000 // RATE
    times = (np.arange(count) + number * count) / 48_000
    frame = av.AudioFrame.from_ndarray((0.2 * np.sin(2 * np.pi * 440 * times)).astype(np.float32)[None], "fltp", "mono")
    frame.sample_rate, frame.pts, frame.time_base = 48_000, number * count, Fraction(1, 48_000)
    return frame


def logo(film: Film, at: tuple[float, float], *, alpha: float = 0.5, text: str = "Studio Nord") -> Mark:
    """A word with a disc beside it, half transparent; its middle at shares of the frame."""
    rng = np.random.default_rng(film.seed)
    size = (film.height, film.width)
    high = film.height * 0.06
    shape = ink(text, rng, weight=600)
    disc = np.zeros((320, 320), np.float32)
    cv2.circle(disc, (160, 160), 150, 1.0, -1, cv2.LINE_AA)
    cv2.circle(disc, (160, 160), 80, 0.0, -1, cv2.LINE_AA)
    middle = (film.width * at[0], film.height * at[1])
    width = shape.shape[1] * high / shape.shape[0]
    plane = np.maximum(
        placed(shape, size, middle, high, 0),
        placed(disc, size, (middle[0] - width / 2 - high, middle[1]), 1.3 * high, 0),
    )
    a = plane * np.float32(alpha)
    return Mark(a, np.repeat(a[..., None], 3, 2))


CORNERS = ((0.16, 0.1), (0.84, 0.9), (0.84, 0.1), (0.16, 0.9))


def fixed(film: Film) -> Marks:
    mark = logo(film, CORNERS[1])
    return lambda _: mark


def jumping(film: Film, every: int = 45) -> Marks:
    marks = [logo(film, corner) for corner in CORNERS]
    return lambda number: marks[number // every % len(marks)]

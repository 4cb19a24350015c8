"""What a clip's file says: its tracks, its frames and when they are shown."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from headrace.removal.errors import ClipUnreadable
from headrace.removal.video.model import Clip
from headrace.removal.video.planes import Layout, layout_of, working_format

MAX_PIXELS = 8192 * 4352
_MAX_FRAMES = 2_000_000
_MIN_SIDE_PX = 32  # pixels
_FULL_COLOUR_RANGE = 2  # as FFmpeg numbers it


@dataclass(frozen=True, slots=True)
class Facts:
    path: str
    format: str  # mp4, mov, mkv, webm
    codec: str
    width: int  # as stored
    height: int
    rotation: int  # degrees to the left that it is turned when shown
    matrix: tuple[int, ...] | None  # the same as the file has it, with mirrors
    layout: Layout
    rate: Fraction
    time_base: Fraction
    stamps: tuple[int, ...]  # when each frame is shown, in order, in units of time_base
    keyframes: int
    bit_rate: int  # of the picture
    audio: int
    subtitles: int

    @property
    def frames(self) -> int:
        return len(self.stamps)

    @property
    def seconds(self) -> float:
        """From the first frame to the end of the last."""
        return float((self.stamps[-1] - self.stamps[0]) * self.time_base + 1 / self.rate)

    @property
    def upright(self) -> tuple[int, int]:
        """Width and height as it is shown."""
        return (self.height, self.width) if self.rotation % 180 else (self.width, self.height)

    def clip(self) -> Clip:
        width, height = self.upright
        return Clip(
            self.format, self.codec, width, height, self.frames, round(self.seconds, 3), self.rotation, self.audio,
            self.subtitles,
        )  # fmt: skip


def opened(path: str) -> Any:
    """The file, open for reading. Raises ``ClipUnreadable``."""
    import av

    try:
        container = av.open(path)
    except (av.FFmpegError, ValueError, OSError) as exc:
        raise ClipUnreadable(
            f"{path} is not a clip that can be read: {reason_of(exc)}. It may be damaged, or cut off: copy it again."
        ) from exc
    if not container.streams.video:
        container.close()
        raise ClipUnreadable(f"{path} has no moving picture.")
    return container


def reason_of(exc: Exception) -> str:
    """FFmpeg's or the system's sentence, without the number of the error and the path."""
    return getattr(exc, "strerror", None) or str(exc)


@dataclass(slots=True)
class _Counted:
    stamps: list[int]
    keyframes: int = 0
    size: int = 0
    first: Any = None


def probe(path: str) -> Facts:
    """Reads every packet's head and decodes one frame. Raises ``ClipUnreadable``."""
    with opened(path) as container:
        stream = container.streams.video[0]
        counted = _counted(container, stream, path)
        first = counted.first or _any_frame(path)
        if first is None or not counted.stamps:
            raise ClipUnreadable(f"{path} has no frame that can be decoded.")
        if first.width * first.height > MAX_PIXELS or min(first.width, first.height) < _MIN_SIDE_PX:
            raise ClipUnreadable(f"{path} has frames of {first.width} x {first.height} pixels: too many, or too few.")
        context = stream.codec_context
        rate = Fraction(stream.average_rate or stream.guessed_rate or 25)
        stamps = sorted(counted.stamps)
        base = Fraction(stream.time_base)
        seconds = max(float((stamps[-1] - stamps[0]) * base), float(1 / rate))
        bits = max(component.bits for component in first.format.components)
        full = _FULL_COLOUR_RANGE in (context.color_range, first.color_range)
        return Facts(
            path,
            _container(container, path),
            context.codec.canonical_name,
            first.width,
            first.height,
            int(first.rotation) % 360,
            _matrix(first),
            layout_of(working_format(first.format.name, bits), full=full),
            rate,
            base,
            tuple(stamps),
            counted.keyframes,
            int(8 * counted.size / seconds),
            len(container.streams.audio),
            len(container.streams.subtitles),
        )


def _counted(container: Any, stream: Any, path: str) -> _Counted:
    import av

    counted = _Counted([])
    try:
        for packet in container.demux(stream):
            if packet.size == 0:
                continue
            counted.size += packet.size
            counted.keyframes += packet.is_keyframe
            if packet.pts is not None and not packet.is_discard:
                counted.stamps.append(packet.pts)
            if counted.first is None:
                counted.first = _first(packet)
            if len(counted.stamps) > _MAX_FRAMES:
                raise ClipUnreadable(f"{path} has more than {_MAX_FRAMES:,} frames.")
    except av.FFmpegError as exc:
        if not counted.stamps:
            raise ClipUnreadable(f"{path} could not be read: {reason_of(exc)}.") from exc
    return counted


def _first(packet: Any) -> Any:
    import av

    try:
        return next(iter(packet.decode()), None)
    except (av.FFmpegError, StopIteration):
        return None


def _any_frame(path: str) -> Any:
    import av

    with opened(path) as container:
        try:
            return next(container.decode(container.streams.video[0]), None)
        except av.FFmpegError:
            return None


def _matrix(frame: Any) -> tuple[int, ...] | None:
    import numpy as np

    try:
        found = next((each for each in frame.side_data if each.type.name == "DISPLAYMATRIX"), None)
    except ValueError:  # a frame carries something that PyAV has no name for, and then tells nothing of the rest
        return None
    return None if found is None else tuple(int(number) for number in np.frombuffer(bytes(found), np.int32))


def _container(container: Any, path: str) -> str:
    name = container.format.name
    if "matroska" in name:
        return "webm" if path.lower().endswith(".webm") else "mkv"
    if "mov" in name:
        return "mov" if path.lower().endswith((".mov", ".qt")) else "mp4"
    return "mkv" if name in ("avi", "mpegts", "mpeg", "flv", "ogg") else "mp4"

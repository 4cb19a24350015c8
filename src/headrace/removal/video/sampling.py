"""A few frames from all over a clip, to learn the mark from."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.removal.errors import ClipUnreadable
from headrace.removal.video.planes import Layout, cropped, views_of
from headrace.removal.video.probing import Facts, opened

Box = tuple[int, int, int, int]  # top, bottom, left, right; all even
_MAX_SAMPLES, _MIN_SAMPLES = 96, 16
_MAX_SAMPLE_BYTES = 200_000_000  # that all of them may take
_MIN_KEYFRAMES = 40  # then no others are decoded
_ENOUGH_FRAMES = 4  # times as many as are wanted: then some may be passed over


@dataclass(frozen=True, slots=True)
class Sample:
    stamp: int
    seconds: float  # since the first frame
    planes: list[NDArray[Any]]  # copies of the decoder's

    def crop(self, layout: Layout, box: Box) -> NDArray[np.uint8]:
        return cropped(self.planes, layout, box)


def sample(facts: Facts, heed: Callable[[float], object], *, most: int = _MAX_SAMPLES) -> list[Sample]:
    """Frames from all over the clip, in order. ``heed`` receives the progress, 0 to 1, and may raise to end it."""
    layout = facts.layout
    size = facts.width * facts.height * (1.5 if layout.across else 3) * (1 if layout.bits == 8 else 2)
    most = max(min(most, int(_MAX_SAMPLE_BYTES / size)), min(most, _MIN_SAMPLES))
    only_keys = facts.keyframes >= _MIN_KEYFRAMES
    expected = facts.keyframes if only_keys else facts.frames
    wanted = deque(sorted({round(number * (expected - 1) / max(1, most - 1)) for number in range(most)}))
    # Frames that no other one needs are not decoded, where enough are left: then the next one after a time is taken.
    by_time = not only_keys and facts.frames >= _ENOUGH_FRAMES * most
    if by_time:
        wanted = deque(facts.stamps[number] for number in wanted)
    all_of_them = len(wanted)
    taken: list[Sample] = []
    begins = facts.stamps[0]
    for number, frame in enumerate(decoded(facts, skipped="NONKEY" if only_keys else "NONREF" if by_time else None)):
        heed(1 - len(wanted) / all_of_them)
        stamp = begins if frame.pts is None else frame.pts
        at = stamp if by_time else number
        if wanted and at >= wanted[0]:
            planes = [plane.copy() for plane in views_of(native(frame, layout), layout)]
            taken.append(Sample(stamp, float((stamp - begins) * facts.time_base), planes))
            while wanted and wanted[0] <= at:
                wanted.popleft()
    if not taken:
        raise ClipUnreadable(f"{facts.path} has no frame that can be decoded.")
    return taken


def decoded(facts: Facts, *, skipped: str | None = None) -> Iterator[Any]:
    """Every frame that can be decoded, in the order they are shown; what is damaged in between is passed over.

    ``skipped`` are those that are not, by FFmpeg's name for them.
    """
    import av

    with opened(facts.path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        if skipped is not None:
            stream.codec_context.skip_frame = skipped
        packets = container.demux(stream)
        while True:
            try:
                packet = next(packets)
            except (StopIteration, av.FFmpegError):
                return
            try:
                yield from packet.decode()
            except av.FFmpegError:
                continue


def native(frame: Any, layout: Layout) -> Any:
    """The frame in the format that is worked on, and with its size."""
    return frame if frame.format.name == layout.name else frame.reformat(format=layout.name)

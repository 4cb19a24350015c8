"""A few frames from all over a clip, to learn the mark from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.removal.errors import ClipUnreadable
from headrace.removal.video.planes import Layout, cropped, views_of
from headrace.removal.video.probing import Facts, opened

Box = tuple[int, int, int, int]  # top, bottom, left, right; all even
_MOST, _FEWEST = 96, 16
_BYTES = 200_000_000  # that all of them may take
_ENOUGH_KEYFRAMES = 40  # then no others are decoded


@dataclass(frozen=True, slots=True)
class Sample:
    stamp: int
    seconds: float  # since the first frame
    planes: list[NDArray[Any]]  # copies of the decoder's

    def crop(self, layout: Layout, box: Box) -> NDArray[np.uint8]:
        return cropped(self.planes, layout, box)


def sample(facts: Facts, heed: Callable[[float], object], *, most: int = _MOST) -> list[Sample]:
    """Frames from all over the clip, in order. ``heed`` is told how far it is, 0 to 1, and may raise to end it."""
    layout = facts.layout
    size = facts.width * facts.height * (1.5 if layout.across else 3) * (1 if layout.bits == 8 else 2)
    most = max(min(most, int(_BYTES / size)), min(most, _FEWEST))
    only_keys = facts.keyframes >= _ENOUGH_KEYFRAMES
    expected = facts.keyframes if only_keys else facts.frames
    wanted = {round(number * (expected - 1) / max(1, most - 1)) for number in range(most)}
    taken: list[Sample] = []
    begins = facts.stamps[0]
    for number, frame in enumerate(decoded(facts, only_keys=only_keys)):
        heed(min(1.0, number / max(1, expected)))
        if number in wanted:
            planes = [plane.copy() for plane in views_of(native(frame, layout), layout)]
            stamp = begins if frame.pts is None else frame.pts
            taken.append(Sample(stamp, float((stamp - begins) * facts.time_base), planes))
    if not taken:
        raise ClipUnreadable(f"{facts.path} has no frame that can be decoded.")
    return taken


def decoded(facts: Facts, *, only_keys: bool = False) -> Iterator[Any]:
    """Every frame that can be decoded, in the order they are shown; what is damaged in between is passed over."""
    import av

    with opened(facts.path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        if only_keys:
            stream.codec_context.skip_frame = "NONKEY"
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

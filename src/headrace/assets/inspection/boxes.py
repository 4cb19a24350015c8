"""The boxes that MP4, MOV and HEIC consist of, as far as it takes to see whether all of them are there."""

from dataclasses import dataclass

from headrace.assets.inspection.errors import FileDamaged, FileTruncated
from headrace.assets.inspection.source import Source

_MAX_BOXES = 100_000  # a fragmented video has two for each second or so
# Some writers count a box's header twice. Players do not mind, and no frame is lost by it.
_MISCOUNT = 64
_PADDING = frozenset({b"free", b"skip", b"wide", b"uuid", b"udta", b"\0\0\0\0"})


@dataclass(frozen=True, slots=True)
class Box:
    kind: bytes
    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class Layout:
    """``end`` is where the last whole box ends."""

    boxes: tuple[Box, ...]
    end: int

    def has(self, kind: bytes) -> bool:
        return any(box.kind == kind for box in self.boxes)


def read_layout(source: Source) -> Layout:
    """The boxes of the highest level. ``FileTruncated`` if one that matters is longer than the file."""
    boxes: list[Box] = []
    at = 0
    while at + 8 <= source.size:
        box = _read_box(source, at)
        if box is None or not _is_name(box.kind):
            break  # something else stands behind the boxes
        if box.end > source.size:
            if box.kind not in _PADDING and box.end - source.size > _MISCOUNT:
                raise FileTruncated(missing_bytes=box.end - source.size)
            boxes.append(Box(box.kind, box.offset, source.size - box.offset))
            at = source.size
            break
        boxes.append(box)
        at = box.end
        if len(boxes) > _MAX_BOXES:
            raise FileDamaged
    return Layout(tuple(boxes), at)


def _read_box(source: Source, at: int) -> Box | None:
    header = source.read_at(at, 16)
    size, kind = int.from_bytes(header[:4], "big"), header[4:8]
    if size == 1:
        size = int.from_bytes(header[8:16], "big")
        return Box(kind, at, size) if size >= 16 else None
    if size == 0:
        return Box(kind, at, source.size - at)
    return Box(kind, at, size) if size >= 8 else None


def _is_name(kind: bytes) -> bool:
    return kind.isalnum() or all(32 <= byte < 127 or byte == 0xA9 for byte in kind)

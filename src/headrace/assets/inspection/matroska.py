"""How long an MKV or WebM is by its own account."""

from headrace.assets.inspection.errors import FileDamaged, FileTruncated
from headrace.assets.inspection.source import Source

_EBML, _SEGMENT, _VOID = 0x1A45DFA3, 0x18538067, 0xEC


def read_segment_end(source: Source) -> int:
    """Where the segment ends; ``FileTruncated`` if that is behind the file's end. One without a length, as cameras and
    browsers write them while they record, ends with the file."""
    at = 0
    for _ in range(16):
        kind, at = _read_id(source, at)
        length, at = _read_length(source, at)
        if kind == _SEGMENT:
            if length is None:
                return source.size
            if at + length > source.size:
                raise FileTruncated(missing_bytes=at + length - source.size)
            return at + length
        if kind not in (_EBML, _VOID) or length is None:
            raise FileDamaged
        at += length
    raise FileDamaged


def _read_id(source: Source, at: int) -> tuple[int, int]:
    width = _width(source, at, most=4)
    return int.from_bytes(source.read_at(at, width), "big"), at + width


def _read_length(source: Source, at: int) -> tuple[int | None, int]:
    width = _width(source, at, most=8)
    mask = (1 << 7 * width) - 1
    value = int.from_bytes(source.read_at(at, width), "big") & mask
    return (None if value == mask else value), at + width


def _width(source: Source, at: int, *, most: int) -> int:
    """The length in bytes of a number, which its first set bit gives."""
    first = source.read_at(at, 1)
    if not first:
        raise FileTruncated
    width = 9 - first[0].bit_length()
    if width > most:
        raise FileDamaged
    return width

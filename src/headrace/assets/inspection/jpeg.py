"""JPEG: its segments, and whether all rows are there."""

import io
import mmap
import re
from dataclasses import dataclass
from typing import Any

from headrace.assets.inspection.errors import FileBomb, FileDamaged, FileTruncated, FileUnsupported
from headrace.assets.inspection.exif import orientation_of
from headrace.assets.inspection.findings import check_pixels, facts
from headrace.assets.inspection.model import Facts, FileLimits, Format, Note
from headrace.assets.inspection.sniffing import check_hidden
from headrace.assets.inspection.source import Source

# The next marker in coded data: neither a stuffed byte, a restart nor a filler.
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_SOI, _EOI, _SOS, _APP1 = 0xD8, 0xD9, 0xDA, 0xE1
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_DECODABLE = frozenset({0xC0, 0xC1, 0xC2, 0xC9, 0xCA})
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
# Each scan of a progressive picture goes over all pixels again: cameras and programs write about ten.
_MAX_SCANS = 500
_GREY = 128  # what a decoder puts where no data is


@dataclass(slots=True)
class _Segments:
    width: int = 0
    height: int = 0
    frame: int | None = None
    scans: int = 0
    exif: bytes = b""
    end: int | None = None  # behind the last marker, if it exists


def inspect(source: Source, limits: FileLimits) -> Facts:
    with source.mapped() as data:
        segments = _read_segments(data)
    if segments.frame is None:
        raise FileTruncated if segments.end is None else FileDamaged
    check_pixels(segments.width, segments.height, limits)
    if segments.scans > _MAX_SCANS:
        raise FileBomb(scans=segments.scans)
    if segments.frame not in _DECODABLE:
        raise FileUnsupported("This JPEG is lossless or hierarchical, which no usual program shows: save it as PNG.")
    check_hidden(source, segments.end)
    notes = []
    if segments.end is None:
        notes.append(Note.NO_END)
    elif segments.end < source.size:
        notes.append(Note.BYTES_BEHIND)
    mode = _decode(source, complete=segments.end is not None)
    return facts(
        Format.JPEG,
        notes=notes,
        width=segments.width,
        height=segments.height,
        frames=1,
        orientation=orientation_of(segments.exif),
        details={"mode": mode, "progressive": segments.frame in (0xC2, 0xCA) or None},
    )


def _read_segments(data: mmap.mmap) -> _Segments:
    segments, at = _Segments(), 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:  # nonsense between segments, which decoders skip
            following = _MARKER.search(data, at)
            if following is None:
                return segments
            at = following.start()
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker == _EOI:
            segments.end = at + 2
            return segments
        elif marker in _ALONE or marker in (0, _SOI):
            at += 2
        else:
            at = _read_segment(data, at, segments)
    if data[at : at + 2] == b"\xff\xd9":
        segments.end = at + 2
    return segments


def _read_segment(data: mmap.mmap, at: int, segments: _Segments) -> int:
    """Read the segment; gives the position of the next marker."""
    marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
    body = at + 4
    if marker in _FRAMES and segments.frame is None:
        segments.frame = marker
        segments.height = int.from_bytes(data[body + 1 : body + 3], "big")
        segments.width = int.from_bytes(data[body + 3 : body + 5], "big")
    elif marker == _APP1 and not segments.exif and data[body : body + 6] == b"Exif\0\0":
        segments.exif = data[body + 6 : at + 2 + length]
    if marker != _SOS:
        return at + 2 + max(length, 2)
    segments.scans += 1
    following = _MARKER.search(data, at + 2 + length)
    return len(data) if following is None else following.start()


def _decode(source: Source, *, complete: bool) -> str:
    """Decode an eighth of it, which reads all the data; gives the mode. Without its end, the missing part is grey."""
    from PIL import Image

    file: Any = source.open() if complete else io.BytesIO(source.read_at(0, source.size) + b"\xff\xd9")
    with Image.open(file, formats=["JPEG"]) as picture:
        mode = picture.mode
        picture.draft(None, (max(1, picture.width // 8), max(1, picture.height // 8)))
        try:
            picture.load()
        except OSError as exc:
            if "truncated" in str(exc):
                raise FileTruncated from exc
            raise
        if not complete and _is_filled(picture):
            raise FileTruncated
    return mode


def _is_filled(picture: Any) -> bool:
    """Whether the last row is of the one grey that decoders fill rows with that never came."""
    row = picture.convert("L").crop((0, picture.height - 1, picture.width, picture.height))
    low, high = row.getextrema()
    return bool(low == high and abs(low - _GREY) <= 2)

"""GIF: its blocks, counted; the first frame decoded."""

import mmap
from dataclasses import dataclass

from headrace.assets.inspection.errors import FileDamaged, FileTruncated
from headrace.assets.inspection.findings import check_frames, check_pixels, facts
from headrace.assets.inspection.model import Facts, FileLimits, Format, Note
from headrace.assets.inspection.pixels import decode
from headrace.assets.inspection.sniffing import check_hidden
from headrace.assets.inspection.source import Source

_EXTENSION, _IMAGE, _TRAILER, _FILLER = 0x21, 0x2C, 0x3B, 0x00
_CONTROL = 0xF9


@dataclass(slots=True)
class _Walk:
    width: int
    height: int
    frames: int = 0
    hundredths: int = 0
    end: int | None = None


def inspect(source: Source, limits: FileLimits) -> Facts:
    with source.mapped() as data:
        walk = _walk(data, limits)
    if walk.frames == 0 and walk.end is not None:
        raise FileDamaged
    check_hidden(source, walk.end)
    try:
        decode(source, "GIF")
    except FileDamaged as exc:
        raise FileTruncated if walk.frames == 0 else FileDamaged from exc
    behind = walk.end is not None and walk.end < source.size
    animated = walk.frames > 1
    return facts(
        Format.GIF,
        notes=[Note.BYTES_BEHIND] * behind + [Note.NO_END] * (walk.end is None),
        width=walk.width,
        height=walk.height,
        frames=max(1, walk.frames),  # the only one may lack its last byte
        duration_ms=walk.hundredths * 10 if animated else None,
        orientation=1,
    )


def _walk(data: mmap.mmap, limits: FileLimits) -> _Walk:
    """To the end, or to where the file breaks off: frames before that are whole."""
    if len(data) < 13:
        raise FileTruncated
    walk = _Walk(_short(data, 6), _short(data, 8))
    check_pixels(walk.width, walk.height, limits)
    at = 13 + _table(data[10])
    while at < len(data):
        kind = data[at]
        if kind == _TRAILER:
            walk.end = at + 1
            return walk
        if kind == _FILLER:
            at += 1
            continue
        following = _skip_extension(data, at, walk) if kind == _EXTENSION else _skip_image(data, at, walk, limits)
        if following is None:
            return walk
        at = following
    return walk


def _skip_extension(data: mmap.mmap, at: int, walk: _Walk) -> int | None:
    if data[at + 1 : at + 2] == bytes([_CONTROL]) and at + 6 < len(data):
        walk.hundredths += _short(data, at + 4)
    return _skip_blocks(data, at + 2)


def _skip_image(data: mmap.mmap, at: int, walk: _Walk, limits: FileLimits) -> int | None:
    if data[at] != _IMAGE:
        if walk.frames:
            return None  # garbage behind whole frames: the frames before it are shown
        raise FileDamaged
    if at + 11 > len(data):
        return None
    # Decoders widen the canvas for a frame that sticks out of it.
    right, bottom = _short(data, at + 1) + _short(data, at + 5), _short(data, at + 3) + _short(data, at + 7)
    check_pixels(max(walk.width, right), max(walk.height, bottom), limits)
    following = _skip_blocks(data, at + 11 + _table(data[at + 9]))
    if following is not None:
        walk.frames += 1
        check_frames(walk.frames, limits)
    return following


def _skip_blocks(data: mmap.mmap, at: int) -> int | None:
    size = len(data)
    while at < size:
        length = data[at]
        at += 1 + length
        if length == 0:
            return at
    return None


def _table(flags: int) -> int:
    return int(3 << ((flags & 7) + 1)) if flags & 0x80 else 0


def _short(data: mmap.mmap, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "little")

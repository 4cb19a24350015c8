"""WebP: its chunks, its frames counted; the first one decoded."""

from dataclasses import dataclass

from headrace.assets.inspection.errors import FileDamaged, FileTruncated
from headrace.assets.inspection.exif import orientation_of
from headrace.assets.inspection.findings import check_frames, check_memory, check_pixels, facts
from headrace.assets.inspection.model import Facts, FileLimits, Format, Note
from headrace.assets.inspection.pixels import decode
from headrace.assets.inspection.sniffing import check_hidden
from headrace.assets.inspection.source import Source

_MAX_CHUNKS = 200_000


@dataclass(slots=True)
class _Walk:
    width: int = 0
    height: int = 0
    frames: int = 0
    duration_ms: int = 0
    lossless: bool = False
    exif: bytes = b""


def inspect(source: Source, limits: FileLimits) -> Facts:
    end = 8 + int.from_bytes(source.head[4:8], "little")
    if end > source.size:
        raise FileTruncated(missing_bytes=end - source.size)
    walk = _walk(source, end)
    check_pixels(walk.width, walk.height, limits)
    check_memory(walk.width, walk.height, bytes_per_pixel=12)  # the library holds two frames beside the result
    check_frames(walk.frames, limits)
    check_hidden(source, end)
    decode(source, "WEBP")
    animated = walk.frames > 1
    return facts(
        Format.WEBP,
        notes=[Note.BYTES_BEHIND] if end + end % 2 < source.size else [],
        width=walk.width,
        height=walk.height,
        frames=max(1, walk.frames),
        duration_ms=walk.duration_ms if animated else None,
        orientation=orientation_of(walk.exif),
        details={"lossless": walk.lossless or None},
    )


def _walk(source: Source, end: int) -> _Walk:
    walk, at = _Walk(), 12
    for _ in range(_MAX_CHUNKS):
        head = source.read_at(at, 8)
        if len(head) < 8 or at + 8 > end:
            return walk
        kind, length = head[:4], int.from_bytes(head[4:], "little")
        if at + 8 + length > source.size:
            raise FileTruncated
        _take(source.read_at(at + 8, min(length, 32)), kind, walk)
        if kind == b"EXIF":
            walk.exif = source.read_at(at + 8, length).removeprefix(b"Exif\0\0")
        at += 8 + length + length % 2
    raise FileDamaged


def _take(body: bytes, kind: bytes, walk: _Walk) -> None:
    """Record what a chunk says: the size (of the canvas if there is one), lossless coding, a frame and its duration."""
    match kind:
        case b"VP8X" if len(body) >= 10:
            walk.width = 1 + int.from_bytes(body[4:7], "little")
            walk.height = 1 + int.from_bytes(body[7:10], "little")
        case b"VP8 " if len(body) >= 10:
            if not walk.width:
                walk.width = int.from_bytes(body[6:8], "little") & 0x3FFF
                walk.height = int.from_bytes(body[8:10], "little") & 0x3FFF
        case b"VP8L" if len(body) >= 5:
            walk.lossless = True
            if not walk.width:
                bits = int.from_bytes(body[1:5], "little")
                walk.width, walk.height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"ANMF" if len(body) >= 16:
            walk.frames += 1
            walk.duration_ms += int.from_bytes(body[12:15], "little")

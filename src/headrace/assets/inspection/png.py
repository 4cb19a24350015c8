"""PNG: its chunks with their checksums, and all rows unpacked without keeping them."""

import struct
import zlib
from dataclasses import dataclass, field

from headrace.assets.inspection.errors import FileBomb, FileDamaged, FileTruncated
from headrace.assets.inspection.exif import orientation_of
from headrace.assets.inspection.findings import check_frames, check_pixels, facts
from headrace.assets.inspection.model import Facts, FileLimits, Format, Note
from headrace.assets.inspection.sniffing import check_hidden
from headrace.assets.inspection.source import Source

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_MODES = {0: "grey", 2: "rgb", 3: "palette", 4: "grey+alpha", 6: "rgb+alpha"}
# The seven passes of an interlaced picture: first column and row, steps.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_PIECE = 1 << 20
_MAX_CHUNKS = 1_000_000
_LAST_FILTER = 4
_PALETTE = 3


@dataclass(slots=True)
class _Header:
    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool

    def row_bytes(self, width: int) -> int:
        return (width * self.depth * _CHANNELS[self.colour] + 7) // 8

    def unpacked_bytes(self) -> int:
        """How much the rows come to, each with its filter's byte."""
        if not self.interlaced:
            return self.height * (1 + self.row_bytes(self.width))
        total = 0
        for left, top, step_x, step_y in _PASSES:
            columns = (self.width - left + step_x - 1) // step_x
            rows = (self.height - top + step_y - 1) // step_y
            if columns > 0 and rows > 0:
                total += rows * (1 + self.row_bytes(columns))
        return total


@dataclass(slots=True)
class _Rows:
    """Unpacks the rows as they come, counts them and checks their filters."""

    header: _Header
    unpacked: int = 0
    finished: bool = False
    _stream: "zlib._Decompress" = field(default_factory=zlib.decompressobj)

    def feed(self, packed: bytes) -> None:
        wanted = self.header.unpacked_bytes()
        while packed and not self.finished:
            piece = self._stream.decompress(packed, _PIECE)
            self._check_filters(piece)
            self.unpacked += len(piece)
            packed = self._stream.unconsumed_tail
            # More than the rows take is not looked at by any reader, and may be without end.
            self.finished = self._stream.eof or self.unpacked > wanted

    def _check_filters(self, piece: bytes) -> None:
        if not self.header.interlaced:
            stride = 1 + self.header.row_bytes(self.header.width)
            filters = piece[-self.unpacked % stride :: stride]
            if filters and max(filters) > _LAST_FILTER and self.unpacked < self.header.unpacked_bytes():
                raise FileDamaged

    @property
    def complete(self) -> bool:
        return self.unpacked >= self.header.unpacked_bytes()


@dataclass(slots=True)
class _Reading:
    rows: _Rows | None = None
    frames: int = 0
    declared_frames: int = 0
    duration_ms: float = 0
    exif: bytes = b""
    has_palette: bool = False
    end: int | None = None
    has_end: bool = False  # its last chunk


def inspect(source: Source, limits: FileLimits) -> Facts:
    reading = _Reading()
    at = 8
    for _ in range(_MAX_CHUNKS):
        at = _read_chunk(source, at, reading, limits)
        if reading.end is not None:
            break
    else:
        raise FileBomb(chunks=_MAX_CHUNKS)
    rows = reading.rows
    if rows is None or not rows.complete:
        raise FileDamaged
    check_frames(reading.frames, limits)
    check_hidden(source, reading.end)
    header = rows.header
    animated = reading.declared_frames > 1
    return facts(
        Format.PNG,
        notes=[Note.BYTES_BEHIND] * (at < source.size) + [Note.NO_END] * (not reading.has_end),
        width=header.width,
        height=header.height,
        frames=max(1, reading.frames if animated else 1),
        duration_ms=round(reading.duration_ms) if animated else None,
        orientation=orientation_of(reading.exif),
        details={"mode": _MODES[header.colour], "bits": header.depth, "interlaced": header.interlaced or None},
    )


def _read_chunk(source: Source, at: int, reading: _Reading, limits: FileLimits) -> int:
    head = source.read_at(at, 8)
    if len(head) < 8:
        return _without_end(source, reading)
    length, kind = int.from_bytes(head[:4], "big"), head[4:]
    end = at + 12 + length
    if end > source.size:
        _feed_what_is_there(source, at, kind, reading)
        return _without_end(source, reading)
    if not kind.isalpha():
        raise FileDamaged
    if kind in (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"acTL", b"fcTL", b"eXIf"):
        _take(source, at, length, kind, reading, limits)
    return end


def _take(source: Source, at: int, length: int, kind: bytes, reading: _Reading, limits: FileLimits) -> None:
    body = source.read_at(at + 8, length)
    checksum = int.from_bytes(source.read_at(at + 8 + length, 4), "big")
    if zlib.crc32(body, zlib.crc32(kind)) != checksum:
        if kind[0] & 0x20:  # one that a reader may do without
            return
        raise FileDamaged
    match kind:
        case b"IHDR":
            reading.rows = _Rows(_read_header(body, limits))
        case b"IDAT":
            _feed(reading, body)
        case b"PLTE":
            reading.has_palette = True
        case b"acTL":
            reading.declared_frames = int.from_bytes(body[:4], "big")
        case b"fcTL" if len(body) >= 24:
            reading.frames += 1
            numerator, denominator = struct.unpack(">HH", body[20:24])
            reading.duration_ms += 1000 * numerator / (denominator or 100)
        case b"eXIf":
            reading.exif = body
        case b"IEND":
            reading.end, reading.has_end = at + 12 + length, True


def _read_header(body: bytes, limits: FileLimits) -> _Header:
    if len(body) < 13:
        raise FileDamaged
    width, height, depth, colour, packing, filtering, interlace = struct.unpack(">IIBBBBB", body[:13])
    if depth not in _DEPTHS.get(colour, ()) or packing or filtering or interlace > 1:
        raise FileDamaged
    check_pixels(width, height, limits)
    return _Header(width, height, depth, colour, bool(interlace))


def _feed(reading: _Reading, packed: bytes) -> None:
    if reading.rows is None or (reading.rows.header.colour == _PALETTE and not reading.has_palette):
        raise FileDamaged
    reading.rows.feed(packed)


def _feed_what_is_there(source: Source, at: int, kind: bytes, reading: _Reading) -> None:
    if kind == b"IDAT":
        _feed(reading, source.read_at(at + 8, source.size - at - 8))


def _without_end(source: Source, reading: _Reading) -> int:
    """The file is over. Taken if all rows are there: every viewer shows it."""
    if reading.rows is None or not reading.rows.complete:
        raise FileTruncated
    reading.end = source.size
    return source.size

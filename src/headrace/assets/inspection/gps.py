"""The GPS data in EXIF: where it is, and the bytes to overwrite to remove it."""

import struct
from dataclasses import dataclass

from headrace.assets.inspection.errors import FileUnsupported
from headrace.assets.inspection.source import Source

_GPS = 0x8825
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}
_MAX_DIRECTORIES = 64
_MAX_VALUE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Patch:
    """Bytes to write over the file's own."""

    offset: int
    content: bytes


def patches_in_tiff(source: Source, start: int) -> list[Patch]:
    """For a TIFF structure (which EXIF is, too) that begins at ``start``; empty if it names no place."""
    header = source.read_at(start, 8)
    order = "<" if header[:2] == b"II" else ">"
    if len(header) < 8:
        return []
    magic, at = struct.unpack(order + "HI", header[2:8])
    if magic != 42:
        raise FileUnsupported("The place in a BigTIFF cannot be taken out: save it as TIFF of under 4 GB.")
    patches: list[Patch] = []
    for _ in range(_MAX_DIRECTORIES):
        if at == 0:
            break
        directory = _Directory(source, start, at, order)
        patches += directory.patches()
        at = directory.following
    return patches


class _Directory:
    """Entries of 12 bytes: tag, type, count, and the value or where it is."""

    def __init__(self, source: Source, start: int, at: int, order: str) -> None:
        self._source, self._start, self._order = source, start, order
        self.place = start + at
        (count,) = struct.unpack(order + "H", source.read_at(self.place, 2).rjust(2, b"\0"))
        body = source.read_at(self.place + 2, count * 12 + 4)
        whole = (len(body) // 12) if len(body) < count * 12 + 4 else count
        self.entries = [body[index * 12 : index * 12 + 12] for index in range(whole)]
        following = body[count * 12 : count * 12 + 4]
        (self.following,) = struct.unpack(order + "I", following) if len(following) == 4 else (0,)

    def patches(self) -> list[Patch]:
        pointers = [entry for entry in self.entries if self._tag(entry) == _GPS]
        if not pointers:
            return []
        kept = [entry for entry in self.entries if self._tag(entry) != _GPS]
        # The entries behind it move up, the pointer to the next directory with them; the room at the end is zeros.
        shorter = struct.pack(self._order + "H", len(kept)) + b"".join(kept)
        shorter += struct.pack(self._order + "I", self.following) + bytes(12 * len(pointers))
        patches = [Patch(self.place, shorter)]
        for entry in pointers:
            (at,) = struct.unpack(self._order + "I", entry[8:12])
            patches += _Directory(self._source, self._start, at, self._order).blanks()
        return patches

    def blanks(self) -> list[Patch]:
        """Zeros for this directory and for all values that it points to."""
        patches = [Patch(self.place, bytes(2 + 12 * len(self.entries)))]
        for entry in self.entries:
            _, kind, count = struct.unpack(self._order + "HHI", entry[:8])
            length = _SIZES.get(kind, 0) * count
            (at,) = struct.unpack(self._order + "I", entry[8:12])
            if 4 < length <= _MAX_VALUE_BYTES and self._start + at + length <= self._source.size:
                patches.append(Patch(self._start + at, bytes(length)))
        return patches

    def _tag(self, entry: bytes) -> int:
        (tag,) = struct.unpack(self._order + "H", entry[:2])
        return int(tag)

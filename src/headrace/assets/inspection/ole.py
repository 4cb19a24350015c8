"""The old Office container (OLE, compound file): its streams by name. [MS-CFB]"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.assets.inspection.errors import FileDamaged, FileTruncated
from headrace.assets.inspection.source import Source

_END, _FREE, _HIGHEST = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFA
_STREAM, _ROOT = 2, 5
_ENTRY = 128
_MAX_ENTRIES = 100_000


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    kind: int
    start: int
    size: int


class Container:
    """Chains of sectors, each followed no further than there are sectors."""

    def __init__(self, source: Source) -> None:
        self._source = source
        head = source.read_at(0, 512)
        if len(head) < 512:
            raise FileTruncated
        major, _order, shift, small_shift = struct.unpack("<26xHHHH", head[:34])
        if shift not in (9, 12) or small_shift != 6 or major not in (3, 4):
            raise FileDamaged
        self._sector = 1 << shift
        self._sectors = max(0, source.size - self._sector + self._sector - 1) // self._sector
        _fats, directory, _, _threshold, small_fat, _small_count, more, more_count = struct.unpack(
            "<44xIIIIIIII", head[:76]
        )
        self._fat = self._read_fat(head[76:512], more, more_count)
        self._entries = list(self._read_directory(directory))
        root = next((entry for entry in self._entries if entry.kind == _ROOT), None)
        if root is None:
            raise FileDamaged
        self._small_fat = _numbers(b"".join(self._chain(small_fat)))
        self._root = root

    @property
    def names(self) -> frozenset[str]:
        """Of streams and storages."""
        return frozenset(entry.name for entry in self._entries)

    def read(self, name: str, most: int) -> Iterator[bytes]:
        """The bytes, up to ``most``, of each stream of that name: files for two versions of a program have two."""
        for entry in self._entries:
            if entry.name == name and entry.kind == _STREAM:
                yield self._read(entry, most)

    def _read(self, entry: _Entry, most: int) -> bytes:
        wanted = min(entry.size, most)
        if entry.size < 4096:
            return self._read_small(entry.start, wanted)
        parts, have = [], 0
        for part in self._chain(entry.start):
            parts.append(part)
            have += len(part)
            if have >= wanted:
                break
        if have < wanted:
            raise FileTruncated
        return b"".join(parts)[:wanted]

    def _read_fat(self, first: bytes, more: int, more_count: int) -> list[int]:
        places = [number for number in _numbers(first) if number < _HIGHEST]
        for _ in range(min(more_count, self._sectors)):
            if more >= _HIGHEST:
                break
            *numbers, more = _numbers(self._at(more))
            places += [number for number in numbers if number < _HIGHEST]
        if len(places) > self._sectors:
            raise FileTruncated
        return _numbers(b"".join(self._at(place) for place in places))

    def _read_directory(self, start: int) -> Iterator[_Entry]:
        count = 0
        for sector in self._chain(start):
            for at in range(0, len(sector) - _ENTRY + 1, _ENTRY):
                raw = sector[at : at + _ENTRY]
                length, kind = struct.unpack("<HB", raw[64:67])
                begin, size = struct.unpack("<IQ", raw[116:128])
                if self._sector == 512:
                    size &= 0xFFFFFFFF
                name = raw[: max(0, min(length, 64) - 2)].decode("utf-16-le", "replace")
                yield _Entry(name, kind, begin, size)
                count += 1
                if count > _MAX_ENTRIES:
                    raise FileDamaged

    def _read_small(self, start: int, size: int) -> bytes:
        store = b"".join(self._chain(self._root.start))
        parts, place = [], start
        for _ in range(64):
            if place >= _HIGHEST:
                break
            parts.append(store[place * 64 : place * 64 + 64])
            place = self._small_fat[place] if place < len(self._small_fat) else _END
        return b"".join(parts)[:size]

    def _chain(self, place: int) -> Iterator[bytes]:
        for _ in range(len(self._fat) + 1):
            if place >= _HIGHEST:
                return
            yield self._at(place)
            if place >= len(self._fat):
                raise FileDamaged
            place = self._fat[place]
        raise FileDamaged  # it runs in a circle

    def _at(self, place: int) -> bytes:
        data = self._source.read_at((place + 1) * self._sector, self._sector)
        if not data:
            raise FileTruncated
        return data.ljust(self._sector, b"\0")  # some writers leave the last sector short


def _numbers(data: bytes) -> list[int]:
    count = len(data) // 4
    return list(struct.unpack(f"<{count}I", data[: count * 4]))

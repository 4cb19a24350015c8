"""The items of a HEIF file as its ``meta`` box lists them (ISO/IEC 14496-12 and 23008-12); nothing is decoded here.

An item is a coded picture (``hvc1``), one composed of others (``grid``, ``iovl``, ``iden``), or a note (``Exif``,
``mime``).
Properties such as size, rotation and decoder configuration are shared between items and listed by their index.
"""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

PICTURES = frozenset({b"hvc1", b"grid", b"iovl", b"iden"})
ALPHA = (b"urn:mpeg:hevc:2015:auxid:1", b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha")
HEVC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"})
GENERAL_BRANDS = frozenset({b"mif1", b"msf1"})  # pictures of any coding
MAX_META_BYTES = 64 * 1024**2
MAX_ITEMS = 100_000
MAX_EXTENTS = 200_000  # of all items: an extent may take no bytes in the list, and a file of 1 KB lists millions
_MAX_TOP_BOXES = 10_000
_IN_FILE, _IN_IDAT = 0, 1

ReadAt = Callable[[int, int], bytes]  # offset, count


class HeifError(ValueError):
    """This HEIF file cannot be read."""


class HeifDamaged(HeifError):
    """The file contradicts itself, or ends too early."""


class HeifUnsupported(HeifError):
    """The file is whole, but uses a part of the format that is not read here."""


@dataclass(frozen=True, slots=True)
class Property:
    kind: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class Extent:
    """A run of an item's bytes: where it lies in the file."""

    offset: int
    length: int


@dataclass(slots=True)
class Item:
    id: int
    kind: bytes = b""
    hidden: bool = False
    mime_type: bytes = b""
    extents: tuple[Extent, ...] = ()
    properties: tuple[Property, ...] = ()
    references: dict[bytes, tuple[int, ...]] = field(default_factory=dict)

    def first(self, kind: bytes) -> bytes | None:
        """The body of its first property of this kind."""
        return next((each.body for each in self.properties if each.kind == kind), None)

    @property
    def coded_size(self) -> tuple[int, int]:
        """Width and height before rotation and cropping."""
        body = self.first(b"ispe")
        if body is None or len(body) < 12:
            raise HeifDamaged("A picture of the file has no size.")
        width, height = struct.unpack(">II", body[4:12])
        return width, height


class Items:
    """All items of one file. ``read_at`` reads the file itself."""

    def __init__(self, read_at: ReadAt, size: int) -> None:
        self._read_at = read_at
        self._size = size
        self._by_id: dict[int, Item] = {}
        self._primary: int | None = None
        self._idat = Extent(0, 0)
        body, start = _read_meta(read_at, size)
        self._parse(body, start)

    def __getitem__(self, item_id: int) -> Item:
        try:
            return self._by_id[item_id]
        except KeyError:
            raise HeifDamaged(f"The file refers to item {item_id}, which it does not hold.") from None

    def __iter__(self) -> Iterator[Item]:
        return iter(self._by_id.values())

    @property
    def primary(self) -> Item:
        """The picture that is meant to be shown: the named one, or else the first."""
        named = self._by_id.get(self._primary or 0)
        if named is not None and named.kind in PICTURES:
            return self._full_size(named)
        shown = self.shown
        if not shown:
            raise HeifUnsupported("The file holds no picture coded by HEVC.")
        return shown[0]

    @property
    def shown(self) -> list[Item]:
        """The pictures that a viewer lists: no tiles, thumbnails, alpha planes or depth maps."""
        inner = {each for item in self for each in item.references.get(b"dimg", ())}
        return [
            item
            for item in self
            if item.kind in PICTURES
            and not item.hidden
            and (item.id not in inner or item.id == self._primary)
            and not any(kind in item.references for kind in (b"thmb", b"auxl"))
        ]

    def _full_size(self, item: Item) -> Item:
        """The picture behind a thumbnail, where a writer named the thumbnail."""
        for each in (self._by_id.get(master) for master in item.references.get(b"thmb", ())):
            if each is not None and each.kind in PICTURES and each.coded_size > item.coded_size:
                return each
        return item

    def pointing_at(self, item: Item, kind: bytes) -> list[Item]:
        """The items with a reference of this kind to the item: its alpha plane, its notes."""
        return [each for each in self if item.id in each.references.get(kind, ())]

    def read(self, item: Item) -> bytes:
        """All bytes of an item."""
        total = sum(extent.length for extent in item.extents)
        if not item.extents or total > self._size:
            raise HeifDamaged("A part of the file lies outside it.")
        if max(extent.offset + extent.length for extent in item.extents) > self._size:
            raise HeifDamaged("A part of the file lies behind its end.")
        parts = [self._read_at(extent.offset, extent.length) for extent in item.extents]
        if any(len(part) != extent.length for part, extent in zip(parts, item.extents, strict=True)):
            raise HeifDamaged("A part of the file lies behind its end.")
        return b"".join(parts)

    def _parse(self, body: bytes, start: int) -> None:
        boxes = {kind: (at, end) for kind, at, end in _boxes(body, 4, len(body))}
        if b"iinf" not in boxes or b"iloc" not in boxes:
            raise HeifDamaged("The file lists no pictures.")
        if b"idat" in boxes:
            at, end = boxes[b"idat"]
            self._idat = Extent(start + at, end - at)
        try:
            self._read_infos(body, *boxes[b"iinf"])
            self._read_locations(body[slice(*boxes[b"iloc"])])
            if b"pitm" in boxes:
                self._read_primary(body[slice(*boxes[b"pitm"])])
            if b"iref" in boxes:
                self._read_references(body, *boxes[b"iref"])
            if b"iprp" in boxes:
                self._read_properties(body, *boxes[b"iprp"])
        except (struct.error, IndexError) as exc:
            raise HeifDamaged("The list of the file's pictures is broken.") from exc

    def _read_primary(self, body: bytes) -> None:
        self._primary = struct.unpack(">H" if body[0] == 0 else ">I", body[4 : 6 if body[0] == 0 else 8])[0]

    def _read_infos(self, body: bytes, at: int, end: int) -> None:
        entries = at + (6 if body[at] == 0 else 8)
        for kind, begin, stop in _boxes(body, entries, end):
            if kind != b"infe" or body[begin] < 2:
                continue
            long = body[begin] >= 3
            item_id = struct.unpack(">I" if long else ">H", body[begin + 4 : begin + (8 if long else 6)])[0]
            named = begin + (10 if long else 8)
            item = Item(item_id, kind=body[named : named + 4], hidden=bool(body[begin + 3] & 1))
            if item.kind == b"mime":
                item.mime_type = body[named + 4 : stop].partition(b"\0")[2].partition(b"\0")[0]
            self._by_id[item_id] = item
            if len(self._by_id) > MAX_ITEMS:
                raise HeifDamaged("The file lists too many items.")

    def _read_locations(self, body: bytes) -> None:
        reader = _Reader(body)
        version = reader.number(1)
        reader.skip(3)
        sizes = reader.number(2)
        offset_size, length_size, base_size = sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15
        index_size = sizes & 15 if version in (1, 2) else 0
        left = MAX_EXTENTS
        for _ in range(reader.number(4 if version == 2 else 2)):
            item_id = reader.number(4 if version == 2 else 2)
            method = reader.number(2) & 15 if version in (1, 2) else _IN_FILE
            reader.skip(2)  # data in other files: there is none
            base = reader.number(base_size)
            extents = []
            left -= (count := reader.number(2))
            if left < 0:
                raise HeifDamaged("The file lists too many parts.")
            for _ in range(count):
                reader.skip(index_size)
                offset = reader.number(offset_size)
                extents.append(self._extent(base + offset, reader.number(length_size), method))
            item = self._by_id.get(item_id)
            if item is not None and method in (_IN_FILE, _IN_IDAT):
                item.extents = tuple(extents)

    def _extent(self, offset: int, length: int, method: int) -> Extent:
        begin, size = (self._idat.offset, self._idat.length) if method == _IN_IDAT else (0, self._size)
        return Extent(begin + offset, length or max(0, size - offset))

    def _read_references(self, body: bytes, at: int, end: int) -> None:
        width = 2 if body[at] == 0 else 4
        found: defaultdict[tuple[int, bytes], list[int]] = defaultdict(list)
        for kind, begin, stop in _boxes(body, at + 4, end):
            reader = _Reader(body[begin:stop])
            item_id = reader.number(width)
            found[item_id, kind] += [reader.number(width) for _ in range(reader.number(2))]
        for (item_id, kind), pointed in found.items():
            if item_id in self._by_id:
                self._by_id[item_id].references[kind] = tuple(pointed)

    def _read_properties(self, body: bytes, at: int, end: int) -> None:
        known: list[Property] = []
        for kind, begin, stop in _boxes(body, at, end):
            if kind == b"ipco":
                known = [Property(name, body[start:to]) for name, start, to in _boxes(body, begin, stop)]
        found: defaultdict[int, list[Property]] = defaultdict(list)
        for kind, begin, stop in _boxes(body, at, end):
            if kind == b"ipma":
                self._associate(body[begin:stop], known, found)
        for item_id, properties in found.items():
            if item_id in self._by_id:
                self._by_id[item_id].properties = tuple(properties)

    def _associate(self, body: bytes, known: list[Property], found: defaultdict[int, list[Property]]) -> None:
        reader = _Reader(body)
        version = reader.number(1)
        width = 2 if reader.number(3) & 1 else 1
        bits = 15 if width == 2 else 7
        for _ in range(reader.number(4)):
            item_id = reader.number(2 if version == 0 else 4)
            listed = [reader.number(width) for _ in range(reader.number(1))]
            indexes = [(value & ((1 << bits) - 1), value >> bits) for value in listed]
            if any(index > len(known) for index, _ in indexes):
                raise HeifDamaged("A picture refers to a property that the file does not hold.")
            found[item_id] += [known[index - 1] for index, _ in indexes if index]


class _Reader:
    """Big-endian numbers, one after the other."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def number(self, width: int) -> int:
        end = self._at + width
        if end > len(self._body):
            raise IndexError(end)
        value = int.from_bytes(self._body[self._at : end], "big")
        self._at = end
        return value

    def skip(self, count: int) -> None:
        self._at += count


def _read_meta(read_at: ReadAt, size: int) -> tuple[bytes, int]:
    """The body of the ``meta`` box of the highest level, and where it begins in the file."""
    at = 0
    for _ in range(_MAX_TOP_BOXES):
        header = read_at(at, 16)
        if len(header) < 8:
            break
        length, kind, skipped = int.from_bytes(header[:4], "big"), header[4:8], 8
        if length == 1 and len(header) == 16:
            length, skipped = int.from_bytes(header[8:16], "big"), 16
        elif length == 0:
            length = size - at
        if length < skipped:
            break
        if kind == b"meta":
            if length > MAX_META_BYTES:
                raise HeifDamaged("The list of the file's pictures is too long.")
            body = read_at(at + skipped, length - skipped)
            if len(body) < length - skipped or len(body) < 4:
                raise HeifDamaged("The file ends within its list of pictures.")
            return body, at + skipped
        at += length
    raise HeifDamaged("The file lists no pictures.")


def _boxes(body: bytes, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Kind, begin and end of the content of each box."""
    while at + 8 <= end:
        length, kind, skipped = int.from_bytes(body[at : at + 4], "big"), body[at + 4 : at + 8], 8
        if length == 1:
            length, skipped = int.from_bytes(body[at + 8 : at + 16], "big"), 16
        elif length == 0:
            length = end - at
        if length < skipped or at + length > end:
            raise HeifDamaged("A box is longer than the one around it.")
        yield kind, at + skipped, at + length
        at += length

"""Removing the place of a picture or video. The bytes are overwritten in place: no pixel is compressed again.

EXIF        the entry that points to the place goes from its directory, its target is filled with zeros
XMP         GPS properties are filled with spaces
MP4, MOV    boxes that hold a place become empty ones; places in Apple's key list are filled with spaces
"""

import mmap
import os
import re
import zlib
from collections.abc import Iterator

from headrace.assets.heif.notes import exif_items, tiff_start
from headrace.assets.inspection import heic
from headrace.assets.inspection.boxes import read_layout
from headrace.assets.inspection.errors import FileUnsupported
from headrace.assets.inspection.gps import Patch, patches_in_tiff
from headrace.assets.inspection.model import Format
from headrace.assets.inspection.sniffing import sniff
from headrace.assets.inspection.source import Source

_PIECE = 1 << 20
_EXIF_SEGMENT = re.compile(rb"\xff\xe1..Exif\0\0(?=II\*\0|MM\0\*)", re.DOTALL)
_XMP = re.compile(rb"<x:xmpmeta.*?</x:xmpmeta>|<rdf:RDF.*?</rdf:RDF>", re.DOTALL)
_XMP_PLACE = re.compile(rb"<exif:GPS(\w+)[^>]*>.*?</exif:GPS\1>|\bexif:GPS\w+\s*=\s*(?:\"[^\"]*\"|'[^']*')", re.DOTALL)
_PLACE_BOX = re.compile(rb"(....)(\xa9xyz|loci)", re.DOTALL)
_ISO6709 = re.compile(rb"[+-]\d{2,7}(?:\.\d+)?[+-]\d{3,8}(?:\.\d+)?(?:[+-]\d+(?:\.\d+)?)?(?:CRS\w+)?/")
_MAX_MOOV_BYTES = 256 * 1024**2
_PICTURES = (Format.JPEG, Format.WEBP, Format.TIFF, Format.HEIC)


def strip(source: Source, target: int) -> bool:
    """Write the file without the place; False, and nothing is written, if it names none."""
    kind = sniff(source)
    if kind is Format.GIF:
        return False
    if kind in (Format.MP4, Format.MOV):
        patches = _in_boxes(source)
    elif kind is Format.PNG:
        patches = _in_png(source)
    elif kind in _PICTURES:
        patches = _in_picture(source, kind)
    else:
        raise FileUnsupported("Of this kind of file the place cannot be taken out: pictures, MP4 and MOV are possible.")
    if not patches:
        return False
    _copy(source, target)
    for patch in patches:
        os.pwrite(target, patch.content, patch.offset)
    return True


def _in_picture(source: Source, kind: Format) -> list[Patch]:
    with source.mapped() as data:
        patches = list(_in_xmp(data, 0, len(data)))
        for start in _exif_starts(source, kind, data):
            patches += patches_in_tiff(source, start)
        if kind is Format.JPEG:  # a short video may lie behind the photograph
            patches += _place_boxes(data, 0, len(data))
    return patches


def _exif_starts(source: Source, kind: Format, data: mmap.mmap) -> list[int]:
    """Where EXIF's own header is in the file."""
    if kind is Format.TIFF:
        return [0]
    if kind is Format.JPEG:
        return [match.end() for match in _EXIF_SEGMENT.finditer(data)]
    if kind is Format.WEBP:
        return _in_riff(source)
    return _in_heic(source)


def _in_riff(source: Source) -> list[int]:
    at, starts = 12, []
    while len(head := source.read_at(at, 14)) >= 8:
        if head[:4] == b"EXIF":
            starts.append(at + 8 + (6 if head[8:14] == b"Exif\0\0" else 0))
        length = int.from_bytes(head[4:8], "little")
        at += 8 + length + length % 2
    return starts


def _in_heic(source: Source) -> list[int]:
    starts = []
    with heic.refusals():
        items = heic.read_items(source)
        for item in exif_items(items):
            if len(item.extents) != 1:  # in pieces, or kept in another item
                raise FileUnsupported("The place in this HEIC cannot be taken out: save it as JPEG, and send that.")
            content = items.read(item)
            start = tiff_start(content)
            if start < len(content):
                starts.append(item.extents[0].offset + start)
    return starts


def _in_xmp(data: bytes | mmap.mmap, begin: int, end: int) -> Iterator[Patch]:
    for packet in _XMP.finditer(data, begin, end):
        for place in _XMP_PLACE.finditer(packet.group()):
            yield Patch(packet.start() + place.start(), b" " * len(place.group()))


def _in_png(source: Source) -> list[Patch]:
    """In its chunks, whose checksums follow."""
    at, patches = 8, []
    while len(head := source.read_at(at, 8)) == 8:
        length, kind = int.from_bytes(head[:4], "big"), head[4:]
        if kind in (b"eXIf", b"iTXt", b"tEXt") and at + 12 + length <= source.size:
            body = source.read_at(at + 8, length)
            patched = [Patch(at + 8 + patch.offset, patch.content) for patch in _in_xmp(body, 0, length)]
            if kind == b"eXIf":
                patched += patches_in_tiff(source, at + 8)
            patches += _with_checksum(patched, at, kind + body)
        at += 12 + length
    return patches


def _with_checksum(patches: list[Patch], chunk: int, content: bytes) -> list[Patch]:
    if not patches:
        return []
    changed = bytearray(content)  # from the chunk's name on, which is 4 bytes behind its beginning
    for patch in patches:
        begin = patch.offset - chunk - 4
        changed[begin : begin + len(patch.content)] = patch.content
    checksum = zlib.crc32(changed).to_bytes(4, "big")
    return [*patches, Patch(chunk + 4 + len(content), checksum)]


def _in_boxes(source: Source) -> list[Patch]:
    patches = []
    for box in read_layout(source).boxes:
        if box.kind in (b"moov", b"udta", b"meta", b"uuid") and box.size <= _MAX_MOOV_BYTES:
            data = source.read_at(box.offset, box.size)
            for patch in (*_place_boxes(data, 0, len(data)), *_in_xmp(data, 0, len(data)), *_apple_places(data)):
                patches.append(Patch(box.offset + patch.offset, patch.content))  # noqa: PERF401 - reads better
    return patches


def _place_boxes(data: bytes | mmap.mmap, begin: int, end: int) -> list[Patch]:
    """Boxes with a place become room that is left free."""
    patches = []
    for match in _PLACE_BOX.finditer(data, begin, end):
        size = int.from_bytes(match.group(1), "big")
        if 12 <= size <= 1024 and match.start() + size <= end:
            patches.append(Patch(match.start() + 4, b"free" + bytes(size - 8)))
    return patches


def _apple_places(data: bytes) -> Iterator[Patch]:
    if b"com.apple.quicktime.location.ISO6709" in data:
        for match in _ISO6709.finditer(data):
            yield Patch(match.start(), b" " * len(match.group()))


def _copy(source: Source, target: int) -> None:
    at = 0
    while piece := source.read_at(at, _PIECE):
        at += len(piece)
        view = memoryview(piece)
        while view:
            view = view[os.write(target, view) :]

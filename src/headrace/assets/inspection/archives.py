"""Untrusted ZIP archives: their contents, before anything is unpacked."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from xml.etree import ElementTree as ET

from headrace.assets.inspection.errors import FileBomb, FileDamaged, FileEncrypted, FileTruncated
from headrace.assets.inspection.model import FileLimits
from headrace.assets.inspection.source import Source

_MAX_ENTRIES = 50_000
_ENCRYPTED = 0x1
# Deflate packs at most a thousandfold, and documents' XML seldom fiftyfold; small entries may have any ratio.
_RATIO, _SMALL = 200, 32 * 1024**2
_MAX_XML_BYTES = 32 * 1024**2
_PIECE = 1 << 20
_XML_ENDINGS = (".xml", ".rels", ".vml")
_DECLARATIONS = tuple(
    word.encode(encoding) for word in ("<!DOCTYPE", "<!ENTITY") for encoding in ("utf-8", "utf-16-le", "utf-16-be")
)
_MAX_DECLARATION_BYTES = max(map(len, _DECLARATIONS))
_ENTITIES = "A part of the file declares XML entities, which no presentation does: save it again and upload that."


@contextmanager
def opened(source: Source, limits: FileLimits) -> Iterator[zipfile.ZipFile]:
    """The archive, if its directory is one of an honest archive."""
    try:
        archive = zipfile.ZipFile(source.open())
    except zipfile.BadZipFile as exc:
        # The directory is the last thing in it: broken off, there is none.
        raise (FileDamaged if b"PK\x05\x06" in source.tail(65_536 + 22) else FileTruncated) from exc
    with archive:
        _check(archive, source, limits)
        yield archive


def _check(archive: zipfile.ZipFile, source: Source, limits: FileLimits) -> None:
    entries = archive.infolist()
    if len(entries) > _MAX_ENTRIES:
        raise FileBomb(entries=len(entries))
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise FileEncrypted
    unpacked = sum(entry.file_size for entry in entries)
    if limits.max_unpacked_bytes is not None and unpacked > limits.max_unpacked_bytes:
        raise FileBomb(unpacked_bytes=unpacked)
    for entry in entries:
        if entry.file_size > _SMALL and entry.file_size > _RATIO * max(1, entry.compress_size):
            raise FileBomb(unpacked_bytes=entry.file_size)
    # Entries that share their bytes are how a few kilobytes become terabytes.
    at = 0
    for entry in sorted(entries, key=lambda each: each.header_offset):
        if entry.header_offset < at:
            raise FileBomb
        at = entry.header_offset + 30 + entry.compress_size
        if at > source.size:
            raise FileTruncated


def check_entries(archive: zipfile.ZipFile) -> None:
    """Unpack everything, keep nothing: are the checksums right, and is no part XML with entities?"""
    try:
        for entry in archive.infolist():
            is_xml = entry.filename.lower().endswith(_XML_ENDINGS)
            last = b""
            with archive.open(entry) as file:
                while piece := file.read(_PIECE):
                    if is_xml and _declares_entities(last + piece):
                        raise FileBomb(_ENTITIES)
                    last = piece[-_MAX_DECLARATION_BYTES:]
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as exc:
        raise FileDamaged from exc
    except NotImplementedError as exc:  # packed in a way that no presentation is
        raise FileDamaged from exc


def _declares_entities(text: bytes) -> bool:
    return any(word in text for word in _DECLARATIONS)


def read_xml(archive: zipfile.ZipFile, name: str) -> ET.Element | None:
    """One part as XML; None if it is not there. Never with entities, which multiply, or name other files."""
    try:
        entry = archive.getinfo(name)
    except KeyError:
        return None
    if entry.file_size > _MAX_XML_BYTES:
        raise FileBomb(unpacked_bytes=entry.file_size)
    try:
        text = archive.read(entry)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as exc:
        raise FileDamaged from exc
    if _declares_entities(text):
        raise FileBomb(_ENTITIES)
    try:
        return ET.fromstring(text)  # noqa: S314 - without a document type there are no entities
    except ET.ParseError as exc:
        raise FileDamaged from exc

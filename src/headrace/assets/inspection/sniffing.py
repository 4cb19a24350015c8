"""Which kind of file it is, by its first bytes, and whether it is a second kind at the same time."""

import struct

from headrace.assets.heif.items import GENERAL_BRANDS, HEVC_BRANDS
from headrace.assets.inspection.errors import FileDamaged, FilePolyglot, FileUnknown
from headrace.assets.inspection.model import Format
from headrace.assets.inspection.source import Source

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP = b"PK\x03\x04"
_PDF_WITHIN = 1024  # readers look for the beginning of a PDF this far
# QuickTime's files of before 2001 have no ftyp and begin with one of these.
_OLD_MOV = frozenset({b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"})
_STARTS: tuple[tuple[bytes, Format], ...] = (
    (b"\xff\xd8\xff", Format.JPEG),
    (b"\x89PNG\r\n\x1a\n", Format.PNG),
    (b"GIF87a", Format.GIF),
    (b"GIF89a", Format.GIF),
    (b"II*\0", Format.TIFF),
    (b"MM\0*", Format.TIFF),
    (b"II+\0", Format.TIFF),
    (b"MM\0+", Format.TIFF),
    (OLE, Format.PPT),
    (ZIP, Format.PPTX),
)
# What people send by mistake, so that the refusal can name it.
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"BM", "a BMP picture"),
    (b"\0\0\1\0", "an icon"),
    (b"8BPS", "a Photoshop file"),
    (b"\xff\x0a", "a JPEG XL picture"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL picture"),
    (b"\0\0\0\x0cjP  ", "a JPEG 2000 picture"),
    (b"<svg", "an SVG drawing"),
    (b"<?xml", "an XML file"),
    (b"<!DOCTYPE html", "a web page"),
    (b"<html", "a web page"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript file"),
    (b"ID3", "an MP3"),
    (b"OggS", "an Ogg file"),
    (b"FLV\1", "a Flash video"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "a Windows Media file"),
    (b"\0\0\1\xba", "an MPEG video"),
    (b"\0\0\1\xb3", "an MPEG video"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"MZ", "a Windows program"),
    (b"\x7fELF", "a Linux program"),
)
# What may not hide behind the end of a file. Telephones put videos and second pictures there: those may.
_HIDDEN: tuple[bytes, ...] = (b"%PDF-", b"Rar!\x1a\x07", b"7z\xbc\xaf\x27\x1c", b"\x7fELF", ZIP, OLE)
_TAKEN = "send JPEG, PNG, WebP, TIFF, GIF, HEIC, MP4, MOV, MKV, WebM, PDF, PPTX or PPT."


def sniff(source: Source) -> Format:
    """The kind of file; ``FileUnknown`` names the apparent one."""
    head = source.head
    kind = _by_start(head)
    if kind is None and b"%PDF" in head[:_PDF_WITHIN]:
        return Format.PDF
    if kind is None:
        raise _unknown(source)
    if b"%PDF-" in head[:_PDF_WITHIN]:
        raise FilePolyglot(f"The file is {kind.name} and PDF at once: save it again with a usual program.")
    return kind


def check_hidden(source: Source, end: int | None = None) -> None:
    """Refuse a file that is a ZIP (and so a program, a document) when it is read from its end, or hides one behind it.

    ``end`` is where the file's own content ends, if its reader knows.
    """
    if _is_zip_from_its_end(source):
        raise FilePolyglot("The file is a ZIP archive at the same time: save it again with a usual program.")
    behind = source.read_at(end, _PDF_WITHIN) if end is not None else b""
    if any(sign in behind[:32] for sign in _HIDDEN) or b"%PDF-" in behind:
        raise FilePolyglot("Another file hides behind the end of this one: save it again with a usual program.")


def _by_start(head: bytes) -> Format | None:
    for start, kind in _STARTS:
        if head.startswith(start):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return Format.WEBP
    if head[:4] == b"\x1a\x45\xdf\xa3":
        return _by_doctype(head)
    if head[4:8] == b"ftyp":
        return _by_brand(head)
    return Format.MOV if head[4:8] in _OLD_MOV and int.from_bytes(head[:4], "big") != 0 else None


def _by_brand(head: bytes) -> Format | None:
    length = min(int.from_bytes(head[:4], "big"), 256)
    major = head[8:12]
    brands = {major, *(head[at : at + 4] for at in range(16, length - 3, 4))}
    if major == b"qt  ":
        return Format.MOV
    if brands & {b"avif", b"avis"} or major in (b"crx ", b"jp2 ", b"jpx "):
        return None
    if brands & HEVC_BRANDS or major in GENERAL_BRANDS:
        return Format.HEIC
    return None if major in (b"M4A ", b"M4B ", b"F4A ") else Format.MP4


def _by_doctype(head: bytes) -> Format | None:
    at = head.find(b"\x42\x82", 0, 128)
    doctype = head[at + 3 : at + 3 + (head[at + 2] & 0x7F)].rstrip(b"\0") if 0 <= at < len(head) - 3 else b""
    return {b"webm": Format.WEBM, b"matroska": Format.MKV}.get(doctype)


def _unknown(source: Source) -> Exception:
    head = source.head
    if not head.strip(b"\0") and not source.tail(4096).strip(b"\0"):
        return FileDamaged("The file holds nothing but zeros: it was not saved or copied whole. Send it again.")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for start, name in _OTHERS:
        if text[: len(start)].lower() == start.lower():
            return FileUnknown(f"This seems to be {name}, which is not taken: {_TAKEN}")
    if head[:4] == b"RIFF":
        return FileUnknown(f"This seems to be an AVI video or a WAV sound, which is not taken: {_TAKEN}")
    if head[4:8] == b"ftyp":
        return FileUnknown(f"This is an AVIF picture, a camera's raw file or a sound, which is not taken: {_TAKEN}")
    return FileUnknown()


def _is_zip_from_its_end(source: Source) -> bool:
    """Whether a ZIP's directory is at the end, where every unpacker expects it."""
    tail = source.tail(65_536 + 22)
    at = tail.rfind(b"PK\x05\x06")
    while at >= 0:
        record = tail[at : at + 22]
        if len(record) == 22:
            entries, size, _offset, comment = struct.unpack("<10xHIIH", record)
            start = source.size - len(tail) + at - size
            # A comment may be cut off or padded: unpackers do not mind. The directory has to be there, though.
            near_end = at + 22 + comment >= len(tail) - 1024
            if entries and near_end and start >= 0 and source.read_at(start, 4) == b"PK\x01\x02":
                return True
        at = tail.rfind(b"PK\x05\x06", 0, at)
    return False

"""PPT, PowerPoint's files of before 2007. [MS-PPT]"""

import struct
from collections.abc import Iterator

from headrace.assets.inspection.errors import FileDamaged, FileEncrypted, FileUnknown, FileUnsupported
from headrace.assets.inspection.findings import check_pages, facts
from headrace.assets.inspection.model import Facts, FileLimits, Format, Note
from headrace.assets.inspection.ole import Container
from headrace.assets.inspection.sniffing import check_hidden
from headrace.assets.inspection.source import Source

_DOCUMENT, _LIST, _SLIDE_PLACE, _DOCUMENT_ATOM = 0x03E8, 0x0FF0, 0x03F3, 0x03E9
_SLIDES_LISTED = 0  # the list's instance: 0 slides, 1 masters, 2 notes
_ENCRYPTED_TOKEN = 0xF3D1C4DF
_MAX_BYTES = 256 * 1024**2
_MASTER_UNITS = 576  # to the inch
_EMU = 914_400
_OLD_NAMES = frozenset({"PP40", "Header", "Text_Content", "PersistentStorage Directory"})


def inspect(source: Source, limits: FileLimits) -> Facts:
    container = Container(source)
    names = container.names
    if "EncryptedPackage" in names:
        raise FileEncrypted
    if "PowerPoint Document" not in names:
        raise _other(names)
    check_hidden(source)
    if "EncryptedSummary" in names or any(map(_is_encrypted, container.read("Current User", 4096))):
        raise FileEncrypted
    found = [_read_document(stream) for stream in container.read("PowerPoint Document", _MAX_BYTES)]
    document = next(filter(None, found), None)
    if document is None:
        raise _too_old() if names & _OLD_NAMES else FileDamaged()
    slides, size = document
    check_pages(slides, limits)
    return facts(
        Format.PPT,
        notes=[Note.MACROS] if any(name.upper() in ("VBA", "_VBA_PROJECT") for name in names) else [],
        pages=slides,
        signed="_signatures" in names or "_xmlsignatures" in names,
        details={"slide_width_emu": size[0], "slide_height_emu": size[1]} if size else {},
    )


def _other(names: frozenset[str]) -> Exception:
    if names & {"WordDocument", "Workbook", "Book"}:
        return FileUnknown("This is a Word or Excel file, which is not taken: save it as PDF and send that.")
    return _too_old() if names & _OLD_NAMES else FileUnknown()


def _too_old() -> FileUnsupported:
    return FileUnsupported("This presentation is of PowerPoint 95 or older: save it as PPTX and send that.")


def _is_encrypted(current_user: bytes) -> bool:
    return len(current_user) >= 16 and int.from_bytes(current_user[12:16], "little") == _ENCRYPTED_TOKEN


def _read_document(stream: bytes) -> tuple[int, tuple[int, int] | None] | None:
    """How many slides, and how large; None if it is no presentation.

    Each save appends the document again: the last one counts.
    """
    documents = [(begin, end) for kind, _, begin, end in _records(stream, 0, len(stream)) if kind == _DOCUMENT]
    if not documents:
        return None
    begin, end = documents[-1]
    slides, size = 0, None
    for kind, instance, first, last in _records(stream, begin, end):
        if kind == _LIST and instance == _SLIDES_LISTED:
            slides += sum(each[0] == _SLIDE_PLACE for each in _records(stream, first, last))
        elif kind == _DOCUMENT_ATOM and last - first >= 8:
            width, height = struct.unpack_from("<II", stream, first)
            size = (width * _EMU // _MASTER_UNITS, height * _EMU // _MASTER_UNITS)
    return slides, size


def _records(stream: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Each: its kind and instance, where its content begins and ends."""
    while at + 8 <= end:
        version, kind, length = struct.unpack_from("<HHI", stream, at)
        begin = at + 8
        if kind == 0 and length == 0:
            return  # room that was left over
        if begin + length > len(stream):
            return
        yield kind, version >> 4, begin, begin + length
        at = begin + length

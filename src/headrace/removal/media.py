"""What kind of media a file is, by its first bytes. Needs no library."""

from pathlib import Path

# Of all frames of an animated picture together. When the result is held against the original, each takes some 15 bytes.
MAX_ANIMATED_PIXELS = 200_000_000
DOCUMENTS = ("PDF", "PPT")

_HEAD_BYTES = 1024  # in which a PDF says that it is one
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the container of all older Office files
_EBML = b"\x1a\x45\xdf\xa3"
# Brands of ISO files that are pictures.
_PICTURES = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1", b"avif", b"avis", b"jxl ", b"crx ")
_FTYP, _OLD_QUICKTIME = b"ftyp", (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
_PACKET_BYTES = 188  # of MPEG-TS


def media_of(path: str | Path) -> str:
    """IMAGE, PDF, PPT or VIDEO; IMAGE also for what cannot be read."""
    head = _head(path)
    if _is_clip(head):
        return "VIDEO"
    kind = _document(head)
    return "IMAGE" if kind is None else "PDF" if kind == "pdf" else "PPT"


def document_of(path: str | Path) -> str | None:
    """``pdf``, ``pptx`` or ``ppt``; None for what is no document."""
    return _document(_head(path))


def _head(path: str | Path) -> bytes:
    try:
        if not Path(path).is_file():  # reading from a pipe would wait for its writer
            return b""
        with Path(path).open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def _document(head: bytes) -> str | None:
    if head.startswith(b"PK\x03\x04"):
        return "pptx"
    if head.startswith(_OLE):
        return "ppt"
    return "pdf" if b"%PDF-" in head else None


def _is_clip(head: bytes) -> bool:
    """MP4, MOV, Matroska and WebM; AVI, FLV and MPEG transport streams, too."""
    kind = head[4:8]
    if kind == _FTYP:
        return head[8:12] not in _PICTURES
    if kind in _OLD_QUICKTIME or head.startswith((_EBML, b"FLV\x01")):
        return True
    if head.startswith(b"RIFF") and head[8:12] == b"AVI ":
        return True
    return len(head) > _PACKET_BYTES and head[0] == head[_PACKET_BYTES] == 0x47

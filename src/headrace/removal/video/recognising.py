"""Whether a file is a clip, by its first bytes. Needs no library."""

from pathlib import Path

_EBML = b"\x1a\x45\xdf\xa3"
# Brands of ISO files that are pictures.
_PICTURES = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1", b"avif", b"avis", b"jxl ", b"crx ")
_FTYP, _OLD_QUICKTIME = b"ftyp", (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
_PACKET = 188  # bytes of MPEG-TS


def is_clip(path: Path) -> bool:
    """MP4, MOV, Matroska and WebM; AVI, FLV and MPEG transport streams, too. False for what cannot be read."""
    try:
        if not path.is_file():  # reading from a pipe would wait for its writer
            return False
        with path.open("rb") as file:
            head = file.read(_PACKET + 1)
    except OSError:
        return False
    kind = head[4:8]
    if kind == _FTYP:
        return head[8:12] not in _PICTURES
    if kind in _OLD_QUICKTIME or head.startswith((_EBML, b"FLV\x01")):
        return True
    if head.startswith(b"RIFF") and head[8:12] == b"AVI ":
        return True
    return len(head) > _PACKET and head[0] == head[_PACKET] == 0x47

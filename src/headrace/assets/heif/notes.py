"""What a HEIF picture says about itself: EXIF, XMP and its colour profile."""

from dataclasses import dataclass

from headrace.assets.heif.items import Item, Items

_MAX_NOTE_BYTES = 16 * 1024**2
_ORIENTATION = 0x0112
_XMP = b"application/rdf+xml"


@dataclass(frozen=True, slots=True)
class Notes:
    exif: bytes = b""  # from its TIFF header on
    xmp: bytes = b""
    profile: bytes = b""


def read_notes(items: Items, item: Item) -> Notes:
    """The notes of one picture. The pixels are given upright, so EXIF's orientation is set to 1."""
    exif = xmp = b""
    for each in items.pointing_at(item, b"cdsc"):
        if sum(extent.length for extent in each.extents) > _MAX_NOTE_BYTES:
            continue
        if each.kind == b"Exif" and not exif:
            content = items.read(each)
            exif = set_upright(content[tiff_start(content) :])
        elif each.kind == b"mime" and each.mime_type == _XMP and not xmp:
            xmp = items.read(each)
    return Notes(exif, xmp, _profile(items, item))


def tiff_start(content: bytes) -> int:
    """Where the TIFF header begins in an EXIF item: behind a number and, often, ``Exif`` and two zeros."""
    start = 4 + int.from_bytes(content[:4], "big")
    if content[start : start + 4] in (b"II*\0", b"MM\0*"):
        return start
    found = [at for at in (content.find(b"II*\0"), content.find(b"MM\0*")) if at >= 0]
    return min(found, default=len(content))


def exif_items(items: Items) -> list[Item]:
    return [item for item in items if item.kind == b"Exif"]


def set_upright(exif: bytes) -> bytes:
    """The same EXIF with orientation 1 in its first directory: HEIF turns by properties of its own."""
    order = {b"II*\0": "little", b"MM\0*": "big"}.get(exif[:4])
    if order is None:
        return exif
    little = "little" if order == "little" else "big"

    def number(at: int, width: int) -> int:
        return int.from_bytes(exif[at : at + width], little)  # type: ignore[arg-type]

    directory = number(4, 4)
    for entry in range(directory + 2, directory + 2 + 12 * number(directory, 2), 12):
        if entry + 12 > len(exif):
            break
        if number(entry, 2) == _ORIENTATION:
            value = (1).to_bytes(2, little)  # type: ignore[arg-type]
            return exif[: entry + 8] + value + exif[entry + 10 :]
    return exif


def _profile(items: Items, item: Item) -> bytes:
    """The ICC profile of the picture, or of its first tile."""
    inner = item.references.get(b"dimg", ())
    for each in (item, *(items[first] for first in inner[:1])):
        for found in each.properties:
            if found.kind == b"colr" and found.body[:4] in (b"prof", b"rICC"):
                return found.body[4:]
    return b""

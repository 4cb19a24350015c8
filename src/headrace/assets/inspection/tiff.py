"""TIFF: its pages, each with its size; the first one decoded."""

from typing import Any

from headrace.assets.inspection.errors import FileDamaged, FileTruncated, FileUnsupported
from headrace.assets.inspection.findings import check_memory, check_pages, check_pixels, facts
from headrace.assets.inspection.model import Facts, FileLimits, Format, Note
from headrace.assets.inspection.sniffing import check_hidden
from headrace.assets.inspection.source import Source

_WIDTH, _HEIGHT, _STRIPS, _ORIENTATION, _STRIP_BYTES, _TILES, _TILE_BYTES = 256, 257, 273, 274, 279, 324, 325
_DNG = 50706


def inspect(source: Source, limits: FileLimits) -> Facts:
    from PIL import Image, UnidentifiedImageError

    check_hidden(source)
    if source.head[8:10] == b"CR" and source.head[:4] == b"II*\0":
        raise _raw()
    try:
        picture: Any = Image.open(source.open(), formats=["TIFF"])
    except UnidentifiedImageError as exc:
        raise _unreadable(source) from exc
    with picture:
        check_pixels(picture.width, picture.height, limits)
        check_memory(picture.width, picture.height, bytes_per_pixel=8)
        if _DNG in picture.tag_v2:
            raise _raw()
        width, height = picture.tag_v2.get(_WIDTH, picture.width), picture.tag_v2.get(_HEIGHT, picture.height)
        orientation = picture.tag_v2.get(_ORIENTATION, 1)
        details = {"mode": picture.mode, "compression": str(picture.info.get("compression", "")) or None}
        _load(picture, source)
        pages, readable = _count_pages(picture, limits)
    return facts(
        Format.TIFF,
        notes=[] if readable else [Note.PARTLY_UNREADABLE],
        width=int(width),
        height=int(height),
        pages=pages,
        frames=1,
        orientation=orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1,
        details=details,
    )


def _load(picture: Any, source: Source) -> None:
    try:
        picture.load()
    except MemoryError:
        raise
    except Exception as exc:
        # libtiff gives only a number for whatever went wrong inside.
        missing = _missing_bytes(picture, source)
        if missing > 0 or "truncated" in str(exc):
            raise FileTruncated(missing_bytes=missing) from exc
        raise FileDamaged from exc


def _missing_bytes(picture: Any, source: Source) -> int:
    """How far behind the file's end its pixels' data would reach."""
    tags, missing = picture.tag_v2, 0
    for starts, lengths in ((_STRIPS, _STRIP_BYTES), (_TILES, _TILE_BYTES)):
        offsets, counts = tags.get(starts), tags.get(lengths)
        if offsets and counts and isinstance(counts, tuple) and len(offsets) == len(counts):
            end = max(offset + count for offset, count in zip(offsets, counts, strict=True))
            missing = max(missing, int(end) - source.size)
    return missing


def _count_pages(picture: Any, limits: FileLimits) -> tuple[int, bool]:
    """How many there are, and whether all could be read."""
    pages = 1
    try:
        while True:
            picture.seek(pages)
            check_pages(pages + 1, limits)
            check_pixels(picture.width, picture.height, limits)
            pages += 1
    except EOFError:
        return pages, True
    except (OSError, SyntaxError, ValueError, KeyError, TypeError, OverflowError):
        return pages, False


def _raw() -> FileUnsupported:
    return FileUnsupported("This is a camera's raw file: export it as JPEG, PNG or TIFF, and send that.")


def _unreadable(source: Source) -> Exception:
    """Pillow does not say why: the directory may lie behind the end, or the kind of pixels be one it does not know."""
    order = "little" if source.head[:2] == b"II" else "big"
    first = int.from_bytes(source.head[4:8], order)  # type: ignore[arg-type]
    if source.head[2] + source.head[3] == 42 and first + 2 > source.size:
        return FileTruncated()
    return FileUnsupported("This TIFF has a kind of pixels that is not taken: save it as PNG, or as a TIFF of 8 bits.")

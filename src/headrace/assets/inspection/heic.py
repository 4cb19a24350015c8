"""HEIC: its boxes, and its first picture decoded."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.assets.heif.decoding import bits_of, decode, size_of
from headrace.assets.heif.items import HeifDamaged, HeifUnsupported, Items
from headrace.assets.inspection.boxes import read_layout
from headrace.assets.inspection.errors import FileDamaged, FileTruncated, FileUnsupported
from headrace.assets.inspection.findings import check_frames, check_memory, check_pixels, facts
from headrace.assets.inspection.model import Facts, FileLimits, Format, Note
from headrace.assets.inspection.sniffing import check_hidden
from headrace.assets.inspection.source import Source


def inspect(source: Source, limits: FileLimits) -> Facts:
    layout = read_layout(source)
    if not layout.has(b"meta"):
        raise FileTruncated if not layout.boxes or layout.end >= source.size else FileDamaged
    check_hidden(source, layout.end)
    with refusals():
        items = read_items(source)
        primary = items.primary
        width, height = size_of(items, primary)
        check_pixels(width, height, limits)
        check_memory(width, height, bytes_per_pixel=10)
        pictures = max(1, len(items.shown))
        check_frames(pictures, limits)
        picture = decode(items, primary)
        bits = bits_of(items, primary)
    return facts(
        Format.HEIC,
        notes=[Note.BYTES_BEHIND] if layout.end < source.size else [],
        width=width,
        height=height,
        frames=pictures,
        orientation=1,  # decoded upright
        details={"mode": picture.mode, "bits": bits},
    )


def read_items(source: Source) -> Items:
    """The list of the file's pictures, none decoded yet."""
    return Items(source.read_at, source.size)


def read_picture(source: Source) -> Any:
    """The primary picture, upright, as Pillow has it."""
    with refusals():
        items = read_items(source)
        return decode(items, items.primary)


@contextmanager
def refusals() -> Iterator[None]:
    """Errors of the reader as reasons to refuse the file."""
    try:
        yield
    except HeifDamaged as exc:
        raise FileDamaged from exc
    except HeifUnsupported as exc:
        raise FileUnsupported(str(exc)) from exc

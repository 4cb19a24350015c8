"""HEIC: its boxes, and its first picture decoded."""

from typing import Any

from headrace.assets.inspection.boxes import read_layout
from headrace.assets.inspection.errors import FileDamaged, FileTruncated
from headrace.assets.inspection.findings import check_frames, check_memory, check_pixels, facts
from headrace.assets.inspection.model import Facts, FileLimits, Format, Note
from headrace.assets.inspection.sniffing import check_hidden
from headrace.assets.inspection.source import Source


def inspect(source: Source, limits: FileLimits) -> Facts:
    layout = read_layout(source)
    if not layout.has(b"meta"):
        raise FileTruncated if not layout.boxes or layout.end >= source.size else FileDamaged
    check_hidden(source, layout.end)
    pictures = open_pictures(source)
    primary = pictures[pictures.primary_index]
    width, height = primary.size
    check_pixels(width, height, limits)
    check_memory(width, height, bytes_per_pixel=10)
    check_frames(len(pictures), limits)
    _ = primary.data  # decodes it
    return facts(
        Format.HEIC,
        notes=[Note.BYTES_BEHIND] if layout.end < source.size else [],
        width=width,
        height=height,
        frames=len(pictures),
        orientation=1,  # the library turns it while it reads
        details={"mode": primary.mode, "bits": primary.info.get("bit_depth")},
    )


def open_pictures(source: Source) -> Any:
    """All pictures of the file, none decoded yet."""
    import pi_heif

    return pi_heif.open_heif(source.open(), convert_hdr_to_8bit=True)

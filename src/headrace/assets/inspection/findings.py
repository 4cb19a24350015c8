"""What readers give back, and the checks that all of them make."""

import resource
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headrace.assets.inspection.errors import (
    FileDamaged,
    FileTooManyFrames,
    FileTooManyPages,
    FileTooManyPixels,
    InspectionMemory,
)
from headrace.assets.inspection.model import Facts, FileLimits, Format, Note


def facts(kind: Format, *, notes: Iterable[Note] = (), mime_type: str | None = None, **known: Any) -> Facts:
    """The facts of a file of this kind; of the details those that are there."""
    details = {name: value for name, value in known.pop("details", {}).items() if value is not None}
    listed = sorted(set(notes))
    if listed:
        details["notes"] = listed
    return Facts(kind.media_type, kind, mime_type or kind.mime_type, details=details, **known)


def check_pixels(width: int, height: int, limits: FileLimits) -> None:
    """By what a file declares, before anything is decoded."""
    if width < 1 or height < 1:
        raise FileDamaged(
            "The file says that it has no pixels: open it in a usual program, save it again and send that."
        )
    if limits.max_pixels is not None and width * height > limits.max_pixels:
        raise FileTooManyPixels(
            f"{width} x {height} pixels are more than are allowed ({limits.max_pixels:,}): scale it down, or choose a "
            "larger plan.",
            width=width,
            height=height,
            max_pixels=limits.max_pixels,
        )


def check_memory(width: int, height: int, *, bytes_per_pixel: int) -> None:
    """Before a library decodes that much: most of them call it damage when they get no memory."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    taken = int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    if width * height * bytes_per_pixel > limit - taken:
        raise InspectionMemory(width=width, height=height)


def check_pages(pages: int, limits: FileLimits) -> None:
    if limits.max_pages is not None and pages > limits.max_pages:
        raise FileTooManyPages(
            f"{pages:,} pages are more than are allowed ({limits.max_pages:,}): send it in parts, or choose a larger "
            "plan.",
            pages=pages,
            max_pages=limits.max_pages,
        )


def check_frames(frames: int, limits: FileLimits) -> None:
    if limits.max_frames is not None and frames > limits.max_frames:
        raise FileTooManyFrames(
            f"{frames:,} frames are more than an animation may have ({limits.max_frames:,}): shorten it, or send it as "
            "a video.",
            frames=frames,
            max_frames=limits.max_frames,
        )

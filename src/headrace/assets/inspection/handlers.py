"""What the child does with a file that it was handed open. Nothing here runs anywhere else."""

import faulthandler
import functools
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from headrace.assets.inspection import (
    gif,
    heic,
    jpeg,
    location,
    office,
    pdf,
    png,
    ppt,
    pptx,
    previews,
    sniffing,
    tiff,
    video,
    webp,
)
from headrace.assets.inspection.errors import FileDamaged, FileRefused, FileTooLarge
from headrace.assets.inspection.model import Facts, FileLimits, Format
from headrace.assets.inspection.source import Source
from headrace.tasks.context import BlockingTaskContext
from headrace.tasks.errors import Fatal
from headrace.tasks.isolation.preloading import preloads

LIBRARIES = ("PIL", "av", "pikepdf", "pypdfium2")
Reader = Callable[[Source, FileLimits], Facts]
READERS: dict[Format, Reader] = {
    Format.JPEG: jpeg.inspect,
    Format.PNG: png.inspect,
    Format.WEBP: webp.inspect,
    Format.TIFF: tiff.inspect,
    Format.GIF: gif.inspect,
    Format.HEIC: heic.inspect,
    Format.PDF: pdf.inspect,
    Format.PPTX: pptx.inspect,
    Format.PPT: ppt.inspect,
    **{kind: functools.partial(video.inspect, kind=kind) for kind in (Format.MP4, Format.MOV, Format.MKV, Format.WEBM)},
}


def _load_libraries() -> None:
    """Once in each child: each library is silenced and leaves the limits to us."""
    import av.logging
    import pikepdf
    import pypdfium2
    from PIL import Image, ImageFile

    faulthandler.disable()  # a broken file's crash is reported by its code, and its trace is not needed
    warnings.simplefilter("ignore")
    Image.MAX_IMAGE_PIXELS = None  # what a file declares was checked against the plan
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    av.logging.set_level(av.logging.PANIC)
    _ = pikepdf, pypdfium2


@preloads(_load_libraries)
def warm_up(_context: BlockingTaskContext, _order: dict[str, Any]) -> dict[str, Any]:
    """Nothing: to run it the libraries were loaded, which takes longer than most files."""
    return {}


@preloads(_load_libraries)
def inspect(context: BlockingTaskContext, order: dict[str, Any]) -> dict[str, Any]:
    """What the file is."""
    (descriptor,) = context.descriptors
    password = order.pop("password", None)
    return _answered(lambda: asdict(_inspect(Source(descriptor), FileLimits(**order), password)))


@preloads(_load_libraries)
def preview(context: BlockingTaskContext, order: dict[str, Any]) -> dict[str, Any]:
    """A small picture of it."""
    descriptor, target = context.descriptors
    return _answered(lambda: previews.write(Source(descriptor), Format(order["format"]), target, order["longest_side"]))


@preloads(_load_libraries)
def draw_page(context: BlockingTaskContext, order: dict[str, Any]) -> dict[str, Any]:
    """One page of a PDF."""
    descriptor, target = context.descriptors
    return _answered(lambda: previews.write_page(Source(descriptor), order["number"], target, order["longest_side"]))


def as_pdf(_context: BlockingTaskContext, order: dict[str, Any]) -> dict[str, Any]:
    """Slides as a PDF. This child has files, and reads neither the one nor the other: LibreOffice does, which has
    nothing but a folder of its own."""
    try:
        with office.converted(order["source"], "pdf", kind=order["kind"], within=order["folder"]) as made:
            made.rename(order["target"])
    except office.OfficeMissing:
        return {"made": False}
    except office.OfficeFailed as exc:
        raise Fatal(FileDamaged().message, code=FileDamaged.code) from exc
    return {"made": True}


@preloads(_load_libraries)
def strip_location(context: BlockingTaskContext, _order: dict[str, Any]) -> dict[str, Any]:
    """The file without the place where it was taken."""
    descriptor, target = context.descriptors
    return _answered(lambda: {"stripped": location.strip(Source(descriptor), target)})


def _inspect(source: Source, limits: FileLimits, password: str | None) -> Facts:
    if limits.max_bytes is not None and source.size > limits.max_bytes:
        raise FileTooLarge(size_bytes=source.size, max_bytes=limits.max_bytes)
    kind = sniffing.sniff(source)
    if kind is Format.PDF and password is not None:
        return pdf.inspect(source, limits, password)
    return READERS[kind](source, limits)


def _answered(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Its result, or the reason to refuse the file. Libraries raise all kinds of errors over a broken file."""
    try:
        return work()
    except FileRefused as exc:
        raise Fatal(exc.message, **{**exc.details, "code": exc.code}) from exc
    except MemoryError:
        raise  # the child ends, and reports it
    except Exception as exc:
        raise Fatal(FileDamaged().message, code=FileDamaged.code, reason=f"{type(exc).__name__}: {exc}"[:200]) from exc

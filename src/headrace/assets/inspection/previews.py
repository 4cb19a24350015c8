"""Small pictures of files."""

import io
import os
import zipfile
from typing import Any

from headrace.assets.inspection import heic, video
from headrace.assets.inspection.errors import FileDamaged
from headrace.assets.inspection.model import Format
from headrace.assets.inspection.pixels import decode
from headrace.assets.inspection.source import Source

_QUALITY = 80
_SHEET = (255, 255, 255)
_MAX_FRAMES_READ = 90
_CONTENT = 12  # the spread of brightness, of 255, from which on a frame shows something
_MAX_THUMBNAIL_BYTES = 8 * 1024**2
_MAX_SIDE_PX = 4096
_VIDEOS = (Format.MP4, Format.MOV, Format.MKV, Format.WEBM)
_PICTURES = {Format.JPEG: "JPEG", Format.PNG: "PNG", Format.WEBP: "WEBP", Format.TIFF: "TIFF", Format.GIF: "GIF"}
_WIDE = (1280, 720)


def write(source: Source, kind: Format, target: int, longest_side: int) -> dict[str, Any]:
    """Make it and write it as WebP; gives its size."""
    from PIL import ImageFile

    ImageFile.LOAD_TRUNCATED_IMAGES = True  # it was taken though its last bytes are missing: show what there is
    try:
        picture = _small(source, kind, longest_side)
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    _pack(picture, target)
    return {"width": picture.width, "height": picture.height}


def write_page(source: Source, number: int, target: int, longest_side: int) -> dict[str, Any]:
    """Draw one page of a PDF and write it as WebP; gives the number of pages. A missing page writes nothing."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(source.open())
    except pypdfium2.PdfiumError:
        raise FileDamaged from None
    try:
        pages = len(document)
        if number <= pages:
            _pack(_drawn(document[number - 1], longest_side) or _sheet("PDF"), target)
    except pypdfium2.PdfiumError:
        raise FileDamaged from None
    finally:
        document.close()
    return {"pages": pages}


def _pack(picture: Any, target: int) -> None:
    packed = io.BytesIO()
    picture.save(packed, "WEBP", quality=_QUALITY, method=4)
    with os.fdopen(target, "wb", closefd=False) as file:
        file.write(packed.getvalue())


def _small(source: Source, kind: Format, longest_side: int) -> Any:
    side = max(16, min(longest_side, _MAX_SIDE_PX))
    picture = _upright(source, kind, side)
    picture.thumbnail((side, side))
    return _in_colours(picture)


def _upright(source: Source, kind: Format, side: int) -> Any:
    if kind in _VIDEOS:
        return _frame(source, kind)
    if kind is Format.PDF:
        return _page(source, side)
    if kind is Format.HEIC:
        return heic.read_picture(source)
    if kind is Format.PPTX:
        return _slide(source) or _sheet("PPTX")
    if kind is Format.PPT:
        return _sheet("PPT")
    return _picture(source, _PICTURES[kind], side)


def _picture(source: Source, name: str, side: int) -> Any:
    from PIL import Image, ImageOps

    if name == "JPEG":
        picture: Any = Image.open(source.open(), formats=["JPEG", "MPO"])
        picture.draft(None, (side * 2, side * 2))  # an eighth of the work, where it is large
        picture.load()
    else:
        picture = decode(source, name)
    if picture.mode.startswith(("I", "F")):
        picture = _eight_bits(picture)
    picture.thumbnail((side, side), reducing_gap=2.0)
    return ImageOps.exif_transpose(picture)


def _eight_bits(picture: Any) -> Any:
    """Of 16 bits or fractions: stretched from the darkest to the lightest, as viewers do."""
    if picture.mode.startswith("I;16"):
        picture = picture.convert("I")
    low, high = picture.getextrema()
    scale = 255 / (high - low) if high > low else 1
    return picture.convert("F").point(lambda value: (value - low) * scale).convert("L")


def _in_colours(picture: Any) -> Any:
    """As RGB; transparency stays, which WebP supports."""
    has_alpha = picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info
    return picture.convert("RGBA" if has_alpha else "RGB")


def _frame(source: Source, kind: Format) -> Any:
    """The first frame that shows something; many videos begin in black."""
    import av

    best: tuple[float, Any, int] | None = None
    with video.opened(source, kind) as container:
        stream = container.streams.video[0]
        looked_at = 0
        for packet in container.demux(stream):
            try:
                frames = packet.decode()
            except av.FFmpegError:
                continue
            for frame in frames:
                looked_at += 1
                spread = _spread(frame)
                if best is None or spread > best[0]:
                    best = (spread, frame.to_image(), int(frame.rotation))
                if spread >= _CONTENT or looked_at >= _MAX_FRAMES_READ:
                    break
            if best is not None and (best[0] >= _CONTENT or looked_at >= _MAX_FRAMES_READ):
                break
    if best is None:
        raise FileDamaged
    _, picture, rotation = best
    return picture.rotate(rotation, expand=True) if rotation % 360 else picture


def _spread(frame: Any) -> float:
    from PIL import ImageStat

    small = frame.reformat(width=64, height=36, format="gray").to_image()
    return float(ImageStat.Stat(small.convert("L")).stddev[0])


def _page(source: Source, side: int) -> Any:
    """Page 1, drawn no larger than is asked for."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(source.open())
    except pypdfium2.PdfiumError:
        return _sheet("PDF")
    try:
        return _drawn(document[0], side) or _sheet("PDF")
    except pypdfium2.PdfiumError:
        return _sheet("PDF")
    finally:
        document.close()


def _drawn(page: Any, side: int) -> Any:
    """The page with ``side`` pixels along its longer side; None if it has no size that could be drawn."""
    width, height = page.get_size()
    longest = max(width, height)
    if not 0 < longest < 1_000_000 or min(width, height) <= 0:
        return None
    return page.render(scale=side / longest, may_draw_forms=False).to_pil()


def _slide(source: Source) -> Any:
    """The picture of the first slide that PowerPoint keeps in the file, if it does."""
    from PIL import Image

    try:
        with zipfile.ZipFile(source.open()) as archive:
            entry = archive.getinfo("docProps/thumbnail.jpeg")
            if entry.file_size > _MAX_THUMBNAIL_BYTES:
                return None
            picture = Image.open(io.BytesIO(archive.read(entry)), formats=["JPEG"])
            if picture.width * picture.height > _MAX_SIDE_PX**2:
                return None
            picture.load()
    except (KeyError, OSError, zipfile.BadZipFile, SyntaxError, ValueError, NotImplementedError):
        return None
    return picture


def _sheet(word: str) -> Any:
    """A plain sheet with the kind of file on it: better than a guess at what a slide looks like."""
    from PIL import Image, ImageDraw, ImageFont

    sheet = Image.new("RGB", _WIDE, _SHEET)
    draw = ImageDraw.Draw(sheet)
    draw.rectangle((0, 0, _WIDE[0] - 1, _WIDE[1] - 1), outline=(200, 200, 200), width=8)
    draw.text((_WIDE[0] / 2, _WIDE[1] / 2), word, fill=(120, 120, 120), font=ImageFont.load_default(200), anchor="mm")
    return sheet

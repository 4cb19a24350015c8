"""Pictures of a PDF as pixels, and back: a JPEG packed as it came, everything else without loss."""

import base64
import io
import zlib
from collections.abc import Callable
from typing import Any

import pikepdf
from pikepdf.exceptions import PikepdfError
from PIL import Image, JpegImagePlugin

_MAX_PIXELS = 120_000_000
_BROKEN = (
    TypeError, ValueError, AttributeError, KeyError, IndexError, OSError, NotImplementedError, SyntaxError,
    PikepdfError, zlib.error, Image.DecompressionBombError,
)  # fmt: skip


class Unreadable(Exception):
    """A picture that is packed or coloured in a way that is not worked on here."""


def decoded(image: Any, *, longest: int | None = None) -> Any:
    """Grey or RGB, 8 bits each; no side longer than ``longest``. Raises ``Unreadable``."""
    try:
        if int(image.Width) * int(image.Height) > _MAX_PIXELS or "/Decode" in image or "/ImageMask" in image:
            raise Unreadable
        opened = _opened(image)
        if longest is not None:
            opened.draft(None, _within(opened.size, longest))
        if opened.mode not in ("L", "RGB", "P", "1"):
            raise Unreadable
        pixels = opened.convert("L" if opened.mode in ("L", "1") else "RGB")
        return pixels if longest is None else pixels.resize(_within((int(image.Width), int(image.Height)), longest))
    except _BROKEN as exc:
        raise Unreadable from exc


def put(image: Any, pixels: Any) -> None:
    """Give a picture other pixels, of its own size; who else shows it shows them, too. Raises ``Unreadable``."""
    try:
        if _is_jpeg(image):
            content, packed = _jpeg(pixels, _opened(image)), pikepdf.Name.DCTDecode
        else:
            content, packed = zlib.compress(pixels.tobytes(), 6), pikepdf.Name.FlateDecode
        kept = image.get("/ColorSpace")
    except _BROKEN as exc:
        raise Unreadable from exc
    image.write(content, filter=packed)
    image.BitsPerComponent = 8
    if not _fits(kept, pixels.mode):
        image.ColorSpace = pikepdf.Name.DeviceGray if pixels.mode == "L" else pikepdf.Name.DeviceRGB


def _opened(image: Any) -> Any:
    if _is_jpeg(image):
        return Image.open(io.BytesIO(_unwrapped(image)))
    return pikepdf.PdfImage(image).as_pil_image()


def _filters(image: Any) -> list[str]:
    packed = image.get("/Filter")
    if packed is None:
        return []
    return [str(each) for each in packed] if isinstance(packed, pikepdf.Array) else [str(packed)]


def _is_jpeg(image: Any) -> bool:
    *around, last = _filters(image) or [""]
    return last in ("/DCTDecode", "/DCT") and set(around) <= _WRAPPINGS.keys()


def _unwrapped(image: Any) -> bytes:
    """The JPEG itself: some programs pack it again, or write it in letters."""
    content = bytes(image.read_raw_bytes())
    for each in _filters(image)[:-1]:
        content = _WRAPPINGS[each](content)
    return content


def _from_letters(content: bytes) -> bytes:
    return base64.a85decode(b"<~" + content.strip(), adobe=True)


_WRAPPINGS: dict[str, Callable[[bytes], bytes]] = {
    "/ASCII85Decode": _from_letters, "/A85": _from_letters, "/FlateDecode": zlib.decompress, "/Fl": zlib.decompress,
}  # fmt: skip


def _jpeg(pixels: Any, original: Any) -> bytes:
    packing: dict[str, Any] = {"quality": 95}
    if original.mode == pixels.mode and original.quantization:
        sampling = JpegImagePlugin.get_sampling(original)
        packing = {"qtables": dict(original.quantization), "subsampling": max(sampling, 0)}
    target = io.BytesIO()
    pixels.save(target, "JPEG", **packing)
    return target.getvalue()


def _fits(space: Any, mode: str) -> bool:
    """Whether the colours are those that a space has as they are: not by a table, not otherwise."""
    if isinstance(space, pikepdf.Array) and len(space) == 2 and space[0] == "/ICCBased":
        return int(space[1].get("/N", 0)) == (1 if mode == "L" else 3)
    return str(space) == ("/DeviceGray" if mode == "L" else "/DeviceRGB")


def _within(size: tuple[int, int], longest: int) -> tuple[int, int]:
    share = min(1.0, longest / max(size))
    return max(1, round(size[0] * share)), max(1, round(size[1] * share))

"""What a picture's file says besides its pixels, so that the result is a file like it. Runs in the child alone."""

import io
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.removal.paths import KINDS

_STRIP_ROWS = 512
_PNG_XMP = "XML:com.adobe.xmp"
# Every part ends at the next quote or bracket, so that the search of a hostile file takes linear time.
_PROVENANCE = re.compile(
    rb"""\sdcterms:provenance\s*=\s*("[^"]*"|'[^']*')|<dcterms:provenance\b[^<>]*(/>|>[^<]*</dcterms:provenance>)"""
)
_SHALLOW = "more than 8 bits a colour become 8"
_GREY = ("1", "L", "LA", "La")
_PROFILED_OTHERWISE = ("CMYK", "LAB")
_BITS_PER_SAMPLE_TAG, _ORIENTATION_TAG = 258, 274
_MAX_IN_PLACE_PIXELS = 60_000_000  # pixels
# How a TIFF's pixels are laid out: true of the original alone.
_LAYOUT = {254, 255, 256, 257, _BITS_PER_SAMPLE_TAG, 259, 262, 266, 273, 274, 277, 278, 279, 284, 317, 320, 322, 323,
           324, 325, 330, 338, 339, 347, 529, 530, 531, 532, 34675}  # fmt: skip
_PACKED = ("tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits")
NO_TRANSPARENCY = ("JPEG", "BMP")
# What Pillow's many readers raise for files that are broken, or made to be.
BROKEN = (
    OSError, ValueError, SyntaxError, TypeError, LookupError, ArithmeticError, AttributeError, EOFError, struct.error,
    NotImplementedError,
)  # fmt: skip


class NotCleanable(ValueError):
    """A picture, but none that can be worked on; says why in a whole sentence."""


@dataclass(slots=True)
class Original:
    kind: str
    grey: bool
    transparency: Any = None
    kept: dict[str, Any] = field(default_factory=dict)  # what any kind of file may carry
    own: dict[str, Any] = field(default_factory=dict)  # how a file of this kind was packed
    notes: list[str] = field(default_factory=list)  # what the result will lack
    deep: bool = False  # 16 bits a colour, which a PNG keeps
    source: str = ""
    stored_exif: bytes = b""  # as the file has it: with how it is to be turned


def read(source: str) -> tuple[Any, Original]:
    """The pixels, upright, and what else there is to keep."""
    from PIL import Image, ImageOps

    with Image.open(source) as opened:
        frames = getattr(opened, "n_frames", 1)
        # Telephones put a small preview or a map of depth behind the photograph, which is the first and the one meant.
        if frames > 1 and opened.format != "MPO":
            raise NotCleanable(
                f"{source} holds {frames} frames or pages: only single pictures and animations can be cleaned. Save "
                "the page you mean to a file of its own first."
            )
        original = Original("JPEG" if opened.format == "MPO" else opened.format or "PNG", _is_grey(opened.mode))
        original.notes = _losses(opened, frames)
        if _has_credentials(source):
            original.notes.append("its Content Credentials (C2PA) do not fit a changed picture, and are not kept")
        original.own = _packing(opened, source)
        original.deep = opened.format == "PNG" and _is_deep(opened)
        original.source, original.stored_exif = source, _exif(opened, but=_LAYOUT - {_ORIENTATION_TAG})
        ImageOps.exif_transpose(opened, in_place=True)
        original.kept = _kept(opened)
        if "xmp" in original.kept:
            original.kept["xmp"] = _without_provenance(original.kept["xmp"])
        original.transparency = _transparency(opened)
        picture = _pixels(opened, _to_rgb(opened, original))
    opened.close()  # leaving it closes the file alone; its pixels are a hundred megabytes for every 25 million
    return picture, original


def kind_of_result(path: str, original: Original) -> str:
    """By the ending; where that says nothing, as the original. Raises if this kind can only be read."""
    from PIL import Image

    kind = KINDS.get(Path(path).suffix.lower(), original.kind)
    Image.init()
    if kind not in Image.SAVE:
        raise NotCleanable(
            f"{kind} can be read, but not written: let --to name a file that ends in {', '.join(KINDS)}."
        )
    if original.deep and kind != "PNG":
        original.notes.append(_SHALLOW)
    return kind


def write(picture: Any, original: Original, path: str, kind: str) -> None:
    """A file with what the original had and this kind can hold; a JPEG packed as it came, or else as good."""
    if _changed_in_place(picture, original, path, kind):
        return
    image = _image(picture)
    if original.grey:
        image = image.convert("L")
    if original.transparency is not None and kind not in NO_TRANSPARENCY:
        image.putalpha(original.transparency)
    options = original.kept | _options(kind, original)
    if kind == "PNG" and "xmp" in options:
        options["pnginfo"] = _with_xmp(options.pop("xmp"))
    if kind == "TIFF" and _has_inner_notes(original):
        options.pop("compression", None)  # libtiff, which packs, cannot write these; larger is better than less
    try:
        image.save(path, kind, **options)
    except (ValueError, TypeError, OverflowError, RuntimeError):  # tables or notes that the writer does not take
        original.notes.append("EXIF, resolution and the way it was packed could not be kept")
        plain = {name: value for name, value in original.kept.items() if name == "icc_profile"}
        image.save(path, kind, **plain | _BEST.get(kind, {}))


def write_lossless(picture: Any, original: Original, path: str) -> bool:
    """The same without any loss, where the kind of the file can be written so: False if it cannot."""
    if kind_of_result(path, original) != "WEBP":
        return False
    lossless = replace(original, kind="WEBP", own={"lossless": True})
    write(picture, lossless, path, "WEBP")
    return True


def _changed_in_place(picture: Any, original: Original, path: str, kind: str) -> bool:
    """Write the original's own numbers but for what has changed, where its kind allows that; False if it does not."""
    if kind != original.kind or picture.size > 3 * _MAX_IN_PLACE_PIXELS:  # it takes some copies of the pixels
        return False
    try:
        if kind == "JPEG" and not original.grey and "qtables" in original.own:
            from headrace.removal.images.jpeg import changed_in_place

            options = original.kept | original.own | {"exif": original.stored_exif}
            changed_in_place(original.source, picture).save(path, kind, **options)
            return True
        if original.deep:
            from headrace.removal.images.png16 import write_png

            write_png(original.source, read(original.source)[0], picture, path)
            return True
    except (ValueError, TypeError, OverflowError, RuntimeError, OSError, SyntaxError):
        pass  # packed again, as any other
    if original.deep:
        original.notes.append(_SHALLOW)
    return False


_BEST: dict[str, dict[str, Any]] = {
    "JPEG": {"quality": 95, "subsampling": 0}, "WEBP": {"quality": 92}, "AVIF": {"quality": 92}
}  # fmt: skip


def _options(kind: str, original: Original) -> dict[str, Any]:
    return original.own if original.own and kind == original.kind else _BEST.get(kind, {})


def _has_inner_notes(original: Original) -> bool:
    """Whether EXIF has directories of its own: of the exposure, of the place."""
    from PIL import ExifTags, Image

    exif = Image.Exif()
    exif.load(original.kept.get("exif", b""))
    return not {int(inner) for inner in ExifTags.IFD}.isdisjoint(exif)


def _with_xmp(xmp: bytes) -> Any:
    """Pillow reads XMP of a PNG, and writes it only as the text that it is."""
    from PIL.PngImagePlugin import PngInfo

    notes = PngInfo()
    notes.add_itxt(_PNG_XMP, xmp.decode("utf-8", "replace"))
    return notes


def _without_provenance(xmp: bytes) -> bytes:
    """XMP without the link to Content Credentials, which do not fit a changed picture."""
    return _PROVENANCE.sub(b"", xmp)


def _has_credentials(source: str) -> bool:
    """Whether a file has a C2PA manifest: in a JPEG's APP11 segments, a PNG's caBX chunk or a WebP's C2PA chunk."""
    content = Path(source).read_bytes()
    return b"c2pa" in content and any(mark in content for mark in (b"jumb", b"caBX", b"C2PA"))


def _is_grey(mode: str) -> bool:
    return mode in _GREY or mode.startswith("I") or mode == "F"


def _losses(opened: Any, frames: int) -> list[str]:
    notes = []
    if opened.mode in _PROFILED_OTHERWISE:
        notes.append(f"{opened.mode} becomes RGB")
    if _is_deep(opened) and opened.format != "PNG":
        notes.append(_SHALLOW)
    if frames > 1:
        notes.append("the previews or maps behind the photograph are not kept")
    return notes


def _is_deep(opened: Any) -> bool:
    if opened.mode.startswith("I") or opened.mode == "F":
        return True
    tags = getattr(opened, "tag_v2", None) or {}
    if any(bits > 8 for bits in tags.get(_BITS_PER_SAMPLE_TAG, ())):
        return True
    # Pillow takes over the upper half of each without a word; only how it is packed in the file tells.
    return any(";16" in str(tile[3]) for tile in opened.tile)


def _packing(opened: Any, source: str) -> dict[str, Any]:
    from PIL import JpegImagePlugin

    if isinstance(opened, JpegImagePlugin.JpegImageFile):
        if opened.mode not in ("L", "RGB") or not opened.quantization:
            return {}
        packing: dict[str, Any] = {"qtables": dict(opened.quantization)}
        sampling = JpegImagePlugin.get_sampling(opened)
        if sampling >= 0:
            packing["subsampling"] = sampling
        elif opened.mode == "RGB":  # one that Pillow cannot write
            packing["subsampling"] = 0
        return packing | ({"progressive": True} if opened.info.get("progressive") else {})
    if opened.format == "WEBP":
        return {"lossless": True} if _is_lossless(source) else {}
    if opened.format == "TIFF" and opened.info.get("compression") in _PACKED:
        return {"compression": opened.info["compression"]}
    return {}


def _is_lossless(source: str) -> bool:
    """Whether a WebP's pixels lie in a chunk of the kind VP8L."""
    with Path(source).open("rb") as file:
        file.seek(12)
        while len(head := file.read(8)) == 8:
            if head[:4] in (b"VP8L", b"VP8 "):
                return head[:4] == b"VP8L"
            size = int.from_bytes(head[4:], "little")
            file.seek(size + size % 2, 1)
    return False


def _kept(opened: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    if opened.info.get("icc_profile"):
        kept["icc_profile"] = opened.info["icc_profile"]
    if exif := _exif(opened, but=_LAYOUT):
        kept["exif"] = exif
    if isinstance(opened.info.get("xmp"), bytes):
        kept["xmp"] = opened.info["xmp"]
    dpi = tuple(float(number) for number in opened.info.get("dpi", ()))
    if len(dpi) == 2 and all(math.isfinite(number) and number >= 1 for number in dpi):
        kept["dpi"] = dpi
    return kept


def _exif(opened: Any, *, but: set[int]) -> bytes:
    exif = opened.getexif()
    for tag in but & set(exif):
        del exif[tag]
    return exif.tobytes() if exif else b""


def _transparency(opened: Any) -> Any:
    # Not by the band: LAB has an A that is a colour.
    if opened.mode in ("RGBA", "LA", "PA"):
        return opened.getchannel("A")
    return opened.convert("RGBA").getchannel("A") if "transparency" in opened.info and not _is_deep(opened) else None


def _to_rgb(opened: Any, original: Original) -> Callable[[Any], Any]:
    """What makes RGB of a strip: CMYK becomes what its profile says that it looks like, in sRGB.

    A profile that describes no RGB does not stay: who reads it with the result sees wrong colours, or an error.
    """
    if opened.mode in _PROFILED_OTHERWISE:
        profile = original.kept.pop("icc_profile", None)
        if profile is not None and opened.mode == "CMYK":
            try:
                return _by_profile(profile)
            except (ImportError, OSError, ValueError, TypeError) as exc:  # Pillow without LittleCMS, or a broken one
                original.notes.append(f"the colour profile could not be used, so colours differ: {exc}")
    return lambda strip: strip.convert("RGB")


def _by_profile(profile: bytes) -> Callable[[Any], Any]:
    from PIL import ImageCms

    printed, shown = ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB")
    # As printers' programs do it: paper becomes white, the darkest ink black, and what lies between as it looks.
    intent, flags = ImageCms.Intent.RELATIVE_COLORIMETRIC, ImageCms.Flags.BLACKPOINTCOMPENSATION
    transform = ImageCms.ImageCmsTransform(printed, ImageCms.ImageCmsProfile(shown), "CMYK", "RGB", intent, flags=flags)
    return transform.apply


def _pixels(image: Any, to_rgb: Callable[[Any], Any]) -> Any:
    """The picture as RGB of 8 bits, taken over in strips: Pillow's copy and ours are all that is held."""
    import numpy as np

    picture = np.empty((image.height, image.width, 3), np.uint8)
    deep = image.mode.startswith("I")
    for top in range(0, image.height, _STRIP_ROWS):
        strip = image.crop((0, top, image.width, min(top + _STRIP_ROWS, image.height)))
        if deep:  # 16 bits of grey
            picture[top : top + _STRIP_ROWS] = (np.asarray(strip).astype(np.int64) >> 8).clip(0, 255)[..., None]
        else:
            picture[top : top + _STRIP_ROWS] = np.asarray(to_rgb(strip))
    return picture


def _image(picture: Any) -> Any:
    from PIL import Image

    image = Image.new("RGB", (picture.shape[1], picture.shape[0]))
    for top in range(0, image.height, _STRIP_ROWS):
        image.paste(Image.fromarray(picture[top : top + _STRIP_ROWS]), (0, top))
    return image

"""Content to serve, and its names: without the web, for code that only removes it."""

import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from headrace.assets.inspection.model import SLIDES, Format

OCTETS = "application/octet-stream"
# What a browser may show in its own window; everything else is saved.
_SHOWN = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif", "video/mp4", "video/webm"})

# Endings of names by what a file is; the first is appended to a name that has none of them.
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    **{kind.mime_type: (kind.value,) for kind in Format},
    Format.JPEG.mime_type: ("jpg", "jpeg", "jpe", "jfif", "mpo"),
    Format.TIFF.mime_type: ("tif", "tiff"),
    Format.HEIC.mime_type: ("heic", "heif"),
    "image/heif": ("heif", "heic"),
    Format.PNG.mime_type: ("png", "apng"),
    Format.MP4.mime_type: ("mp4", "m4v"),
    Format.MOV.mime_type: ("mov", "qt"),
    **{
        mime_type: ("pptx", "pptm", "ppsx", "ppsm", "potx", "potm")
        for mime_type, kind in SLIDES.items()
        if kind != "ppt"
    },
    Format.PPT.mime_type: ("ppt", "pps", "pot"),
}


_MIME_TYPE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9!#$&^_.+-]{0,62}/[a-zA-Z0-9][a-zA-Z0-9!#$&^_.+-]{0,62}")
_TYPES = mimetypes.MimeTypes()  # Python's own, not the machine's


def is_mime_type(text: str) -> bool:
    """Whether it is a type and a subtype, without parameters."""
    return _MIME_TYPE.fullmatch(text) is not None


def mime_type_of_name(name: str) -> str:
    """The type that the ending of a name stands for."""
    mime_type, encoding = _TYPES.guess_type(name)
    return mime_type if mime_type is not None and encoding is None else OCTETS


def download_name(name: str, mime_type: str) -> str:
    """The name under which a file is handed out. It ends like what the file is: a picture that is also a web page must
    not be saved as one."""
    endings = _ENDINGS.get(mime_type)
    if endings is None or name.rpartition(".")[2].lower() in endings:
        return name
    return f"{name}.{endings[0]}"


@dataclass(frozen=True, slots=True)
class Content:
    """One object, as it is handed out."""

    name: str  # in storage
    size: int
    mime_type: str
    etag: str  # without quotes
    file_name: str
    inline: bool = False

    def headers(self) -> dict[str, str]:
        """What also the storage's own links answer with."""
        shown = self.inline and self.mime_type in _SHOWN
        return {"Content-Type": self.mime_type, "Content-Disposition": disposition(self.file_name, inline=shown)}


def disposition(name: str, *, inline: bool) -> str:
    """The header with any name in it: plain for old readers, RFC 8187 for all others."""
    plain_name = "".join(each if each.isascii() and each not in '"\\%' and each.isprintable() else "_" for each in name)
    kind = "inline" if inline else "attachment"
    encoded = quote(name, safe="!#$&+-.^_`|~")
    return f"{kind}; filename=\"{plain_name}\"; filename*=UTF-8''{encoded}"

"""The facts of an inspected file, and the limits of an accepted one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class MediaType(StrEnum):
    """As the documents name them."""

    IMAGE = "IMAGE"
    VIDEO = "VIDEO"
    PDF = "PDF"
    PPT = "PPT"
    OTHER = "OTHER"  # no media: taken only where the settings name its type


MEDIA = (MediaType.IMAGE, MediaType.VIDEO, MediaType.PDF, MediaType.PPT)


class Format(StrEnum):
    """The accepted kinds. Anything else is ``file_unknown``."""

    JPEG = "jpeg"
    PNG = "png"
    WEBP = "webp"
    TIFF = "tiff"
    GIF = "gif"
    HEIC = "heic"
    MP4 = "mp4"
    MOV = "mov"
    MKV = "mkv"
    WEBM = "webm"
    PDF = "pdf"
    PPTX = "pptx"
    PPT = "ppt"

    @property
    def media_type(self) -> MediaType:
        return _MEDIA[self]

    @property
    def mime_type(self) -> str:
        """The usual one."""
        return _MIME[self]

    @property
    def mime_types(self) -> frozenset[str]:
        """All that a file of this format may have: presentations have one each for shows, templates and macros."""
        return PRESENTATIONS_MIME if self is Format.PPTX else frozenset({self.mime_type})


_VIDEOS = (Format.MP4, Format.MOV, Format.MKV, Format.WEBM)
_MEDIA = {
    **dict.fromkeys(Format, MediaType.IMAGE),
    **dict.fromkeys(_VIDEOS, MediaType.VIDEO),
    Format.PDF: MediaType.PDF,
    Format.PPTX: MediaType.PPT,
    Format.PPT: MediaType.PPT,
}
_MIME = {
    Format.JPEG: "image/jpeg",
    Format.PNG: "image/png",
    Format.WEBP: "image/webp",
    Format.TIFF: "image/tiff",
    Format.GIF: "image/gif",
    Format.HEIC: "image/heic",
    Format.MP4: "video/mp4",
    Format.MOV: "video/quicktime",
    Format.MKV: "video/x-matroska",
    Format.WEBM: "video/webm",
    Format.PDF: "application/pdf",
    Format.PPTX: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    Format.PPT: "application/vnd.ms-powerpoint",
}
_OPENXML = "application/vnd.openxmlformats-officedocument.presentationml"
_POWERPOINT = "application/vnd.ms-powerpoint"
# By what the list of contents of a PPTX calls its main part.
PRESENTATIONS = {
    f"{_OPENXML}.presentation.main+xml": f"{_OPENXML}.presentation",
    f"{_OPENXML}.slideshow.main+xml": f"{_OPENXML}.slideshow",
    f"{_OPENXML}.template.main+xml": f"{_OPENXML}.template",
    f"{_POWERPOINT}.presentation.macroEnabled.main+xml": f"{_POWERPOINT}.presentation.macroEnabled.12",
    f"{_POWERPOINT}.slideshow.macroEnabled.main+xml": f"{_POWERPOINT}.slideshow.macroEnabled.12",
    f"{_POWERPOINT}.template.macroEnabled.main+xml": f"{_POWERPOINT}.template.macroEnabled.12",
}
PRESENTATIONS_MIME = frozenset(PRESENTATIONS.values())


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a file. Facts that its kind lacks are None: a picture has no pages, a presentation no pixels.

    ``width`` and ``height`` are as stored; ``orientation`` is EXIF's number (1 to 8) of their rotation, for
    a video the one that stands for its rotation. ``pages`` counts a presentation's slides, too. ``frames`` is 1 for a
    still picture; a video's may be estimated, then ``details["frames_estimated"]`` is true. ``details`` is JSON with
    the facts of some kinds only, and ``details["notes"]`` lists oddities of the file, by words of ``Note``.
    """

    media_type: MediaType
    format: Format | None  # of media alone
    mime_type: str
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    frames: int | None = None
    duration_ms: int | None = None
    orientation: int | None = None
    encrypted: bool = False
    signed: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


class Note(StrEnum):
    """Oddities of an accepted file."""

    REPAIRED = "repaired"  # its structure was broken and could be put together again
    NO_END = "no_end"  # its last bytes are missing, and nothing that matters with them
    BYTES_BEHIND = "bytes_behind"  # data follows its end that readers ignore
    BYTES_BEFORE = "bytes_before"  # something comes before its beginning
    MACROS = "macros"  # it brings programs along; nothing here ever runs them
    LOCKED = "locked"  # its contents need a password
    PARTLY_UNREADABLE = "partly_unreadable"  # some pages or frames cannot be shown
    RIGHTS = "rights"  # it opens without a password, but its owner restricts its use


@dataclass(frozen=True, slots=True)
class FileLimits:
    """How much of a file is taken, by plan; None is no limit beyond what the child may use."""

    max_bytes: int | None = 2 * 1024**3
    max_pixels: int | None = 100_000_000  # of a picture, of a TIFF's page, of a video's frame
    max_pages: int | None = 2_000  # of a PDF or a multi-page TIFF, and slides
    max_seconds: int | None = 2 * 3600
    max_frames: int | None = 2_000  # of an animated picture
    max_unpacked_bytes: int | None = 4 * 1024**3  # of packed content in a presentation, altogether


# By MIME type, the formats of slides.
SLIDES = {mime: each for each in (Format.PPTX, Format.PPT) for mime in each.mime_types}

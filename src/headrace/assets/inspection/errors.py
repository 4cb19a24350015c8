"""Reasons to refuse a file. Each has a stable code, and its message says what to do.

Invalid
└── FileRefused
    ├── FileEmpty, FileTruncated, FileDamaged       it is empty, incomplete or broken
    ├── FileUnknown, FileUnsupported, FileMismatch  it is something else
    ├── FileEncrypted                               it needs a password
    ├── FileTooLarge, FileTooManyPixels, FileTooManyPages, FileTooManyFrames, FileTooLong      beyond the plan
    ├── FileBomb, FilePolyglot                      made to harm
    └── InspectionTimeout, InspectionMemory, InspectionCrashed      unknown: inspecting it took too much
Exhausted
└── InspectionBusy                                  too many files wait for inspection
Unavailable
└── InspectionStopped                               not the file's fault
"""

from collections.abc import Mapping

from headrace.errors import Exhausted, Invalid, Unavailable


class FileRefused(Invalid):
    """This file is not taken."""

    code = "file_refused"


class FileEmpty(FileRefused):
    """The file has no bytes: choose it again, and check whether it is empty on your disk, too."""

    code = "file_empty"


class FileUnknown(FileRefused):
    """This kind of file is not taken: send JPEG, PNG, WebP, TIFF, GIF, HEIC, MP4, MOV, MKV, WebM, PDF, PPTX, PPT."""

    code = "file_unknown"


class FileUnsupported(FileRefused):
    """The kind of file is taken, but not with this content: save it again with a usual program and send that."""

    code = "file_unsupported"


class FileTruncated(FileRefused):
    """The file ends too early: it was not copied or saved whole. Send it again from where it is whole."""

    code = "file_truncated"


class FileDamaged(FileRefused):
    """The file is damaged and cannot be read: open it in the program that made it, save it again and send that."""

    code = "file_damaged"


class FileEncrypted(FileRefused):
    """The file needs a password: remove it in the program that made it, and send it again."""

    code = "file_encrypted"


class FileTooLarge(FileRefused):
    """The file has more bytes than are allowed: send a smaller one, or choose a larger plan."""

    code = "file_too_large"


class FileTooManyPixels(FileRefused):
    """The picture has more pixels than are allowed: scale it down, or choose a larger plan."""

    code = "file_too_many_pixels"


class FileTooManyPages(FileRefused):
    """The document has more pages than are allowed: send it in parts, or choose a larger plan."""

    code = "file_too_many_pages"


class FileTooManyFrames(FileRefused):
    """The animation has more frames than are allowed: shorten it, or send it as a video."""

    code = "file_too_many_frames"


class FileTooLong(FileRefused):
    """The video is longer than is allowed: send it in parts, or choose a larger plan."""

    code = "file_too_long"


class FileBomb(FileRefused):
    """The file unpacks to far more than it seems to hold, as if made to harm: save it again with a usual program."""

    code = "file_bomb"


class FilePolyglot(FileRefused):
    """The file is two kinds of file at once, which hides one of them: save it again with a usual program."""

    code = "file_polyglot"


class FileMismatch(FileRefused):
    """The file is not of the declared kind: send it under its own kind."""

    code = "file_mismatch"


class InspectionTimeout(FileRefused):
    """Inspecting the file took too long: save it again with a usual program, or send a smaller one."""

    code = "inspection_timeout"


class InspectionMemory(FileRefused):
    """Inspecting the file took too much memory: save it again with a usual program, or send a smaller one."""

    code = "inspection_memory"


class InspectionCrashed(FileRefused):
    """The file crashed the program that reads it: save it again with a usual program and send that."""

    code = "inspection_crashed"


class InspectionBusy(Exhausted):
    """Too many files are being looked into: send it again in a moment, and not many at once."""

    code = "inspection_busy"


class InspectionStopped(Unavailable):
    """The service stopped while it looked into the file: send it again."""

    code = "inspection_stopped"


# By code, for what a child says.
REFUSALS: Mapping[str, type[FileRefused]] = {each.code: each for each in FileRefused.__subclasses__()}

"""Errors of files. Faults of a file's content are in ``inspection.errors``."""

from datetime import timedelta

from headrace.errors import Conflict, Denied, Exhausted, Invalid, NotFound, Unavailable


class AssetNotFound(NotFound):
    """There is no such file."""

    code = "asset_not_found"


class UploadNotFound(NotFound):
    """There is no such upload, or it has expired: begin a new one."""

    code = "upload_not_found"


class ResultNotFound(NotFound):
    """This task has no file as its result, or it was deleted when its time was over."""

    code = "result_not_found"


class PreviewNotFound(NotFound):
    """Files of this kind have no preview."""

    code = "preview_not_found"


class PageNotFound(NotFound):
    """There is no such page, or the file is none whose pages can be drawn: that are PDFs and slides."""

    code = "page_not_found"


class LinkInvalid(NotFound):
    """This link is not one of ours, has expired, or its file is gone: ask for a new one."""

    code = "link_invalid"


class ReadingEnded(Denied):
    """The file was deleted while it was being read, or its reader may no longer read it: the connection breaks off."""

    code = "reading_ended"


class DrawingBusy(Exhausted):
    """Other slides are being drawn: try again in a moment."""

    code = "drawing_busy"


class BytesMissing(Unavailable):
    """The bytes of this file cannot be found where they are stored. It is being looked into; upload it again."""

    code = "bytes_missing"


class DigestMismatch(Invalid):
    """The received bytes differ from those sent: the SHA-256 differs. Nothing was kept; send it again."""

    code = "digest_mismatch"


class DigestInvalid(Invalid):
    """Send the SHA-256 as `Content-Digest: sha-256=:<base64>:` (RFC 9530), or as 64 hexadecimal digits in `sha256`."""

    code = "digest_invalid"


class SizeMismatch(Invalid):
    """The number of bytes is not the announced one: send all of them, or announce the right number."""

    code = "size_mismatch"


class UploadBroken(Invalid):
    """The connection ended before all of the file had come. Nothing was kept of it; an upload in parts can continue."""

    code = "upload_broken"


class PartInvalid(Invalid):
    """There is no such part, or it has another size: every part has `part_bytes`, the last one the rest."""

    code = "part_invalid"


class PartsMissing(Conflict):
    """Not all parts are there: send those in `details.missing`, then complete it again."""

    code = "parts_missing"


class UploadOver(Conflict):
    """This upload is completed or aborted: begin a new one."""

    code = "upload_over"


class UploadBeingCompleted(Conflict):
    """This upload is being completed: ask again in a moment."""

    code = "upload_being_completed"
    retry_after = timedelta(seconds=2)


class DirectUnavailable(Invalid):
    """Files cannot be sent straight to the storage here: send the parts to the API, with `direct` false."""

    code = "direct_unavailable"


class FormInvalid(Invalid):
    """Send the file as the body itself, or as `multipart/form-data` with one part that has a `filename`."""

    code = "form_invalid"


class StorageQuotaExceeded(Exhausted):
    """There is no room left in your plan for this file: delete others, or choose a larger plan."""

    code = "storage_quota_exceeded"


class TooManyUploads(Exhausted):
    """Too many of your uploads are under way: complete or abort some of them first."""

    code = "too_many_uploads"


class SweepRefused(Unavailable):
    """Rows and stored files do not fit, as with a wrong storage or database. Nothing was removed: check their URLs."""

    code = "sweep_refused"

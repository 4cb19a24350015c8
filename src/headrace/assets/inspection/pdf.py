"""PDF: its pages, whether it opens without a password, and whether it is signed."""

from typing import Any

from headrace.assets.inspection.errors import FileDamaged, FileEncrypted, FileTruncated
from headrace.assets.inspection.findings import check_pages, facts
from headrace.assets.inspection.model import Facts, FileLimits, Format, Note
from headrace.assets.inspection.sniffing import check_hidden
from headrace.assets.inspection.source import Source

_DEEPEST = 32
_MAX_FIELDS = 5_000
_MAX_POINTS = 1_000_000
_NEEDS_CERTIFICATE = ("unsupported encryption filter", "/Adobe.PubSec")


def inspect(source: Source, limits: FileLimits, password: str | None = None) -> Facts:
    """The facts of a PDF; of a locked one only that, unless the password opens it (``FileEncrypted`` if not)."""
    import pikepdf

    check_hidden(source)
    try:
        with pikepdf.open(
            source.open(),
            password=password or "",
            access_mode=pikepdf.AccessMode.stream,
            suppress_warnings=True,
        ) as document:
            return _read(document, source, limits)
    except pikepdf.PasswordError as exc:
        if password is not None:
            raise FileEncrypted("The password does not open it.") from exc
        return facts(Format.PDF, notes=[Note.LOCKED], encrypted=True)
    except pikepdf.PdfError as exc:
        if any(words in str(exc) for words in _NEEDS_CERTIFICATE):
            raise FileEncrypted("The file is locked with a certificate: send one that is not.") from exc
        return _by_drawing(source, limits, exc)


def _read(document: Any, source: Source, limits: FileLimits) -> Facts:
    declared = _declared_pages(document)
    if declared is not None:
        # Before they are listed, which takes time for each; a lie here is found below.
        check_pages(min(declared, source.size // 8), limits)
    pages = len(document.pages)
    check_pages(pages, limits)
    if pages == 0:
        raise FileDamaged("The PDF has no page: open it in the program that made it, save it again and send that.")
    size = _page_size(document)
    root = document.Root
    notes = [Note.REPAIRED] * bool(document.get_warnings())
    notes += [Note.BYTES_BEFORE] * (not source.head.startswith(b"%PDF-"))
    notes += [Note.PARTLY_UNREADABLE] * (size is None or not _can_be_shown(source))
    notes += [Note.RIGHTS] * bool(document.is_encrypted)
    return facts(
        Format.PDF,
        notes=notes,
        pages=pages,
        encrypted=bool(document.is_encrypted),
        signed=_is_signed(root),
        details={
            "version": str(document.pdf_version),
            "page_width_pt": size[0] if size else None,
            "page_height_pt": size[1] if size else None,
            "form": _has(root, "/AcroForm") or None,
            "javascript": _has(root, "/Names", "/JavaScript") or None,
            "attachments": _has(root, "/Names", "/EmbeddedFiles") or None,
        },
    )


def _declared_pages(document: Any) -> int | None:
    try:
        return int(document.Root.Pages.Count)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _page_size(document: Any) -> tuple[float, float] | None:
    """The first page's size in points as it is shown: the visible part of its boxes, turned, times its unit.

    Nothing of the page is drawn or parsed for it: a form that draws itself keeps a renderer busy for as long as it
    may, and such a file is a kilobyte.
    """
    try:
        page = document.pages[0]
        media, crop = (_sorted_box(list(box)) for box in (page.mediabox, page.cropbox))
        left, bottom = max(media[0], crop[0]), max(media[1], crop[1])
        width, height = min(media[2], crop[2]) - left, min(media[3], crop[3]) - bottom
        unit = float(page.obj.get("/UserUnit", 1))
        turned = int(_inherited(page.obj, "/Rotate") or 0) % 180 == 90
    except (ArithmeticError, AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
        return None
    width, height = width * unit, height * unit
    if not (0 < width < _MAX_POINTS and 0 < height < _MAX_POINTS):
        return None
    width, height = (height, width) if turned else (width, height)
    return round(width, 2), round(height, 2)


def _sorted_box(corners: list[Any]) -> tuple[float, float, float, float]:
    """Left, bottom, right, top, whichever corners were given."""
    x, y, other_x, other_y = (float(each) for each in corners)
    return min(x, other_x), min(y, other_y), max(x, other_x), max(y, other_y)


def _inherited(node: Any, name: str) -> Any:
    for _ in range(_DEEPEST):
        if (value := _get(node, name)) is not None:
            return value
        node = _get(node, "/Parent")
    return None


def _can_be_shown(source: Source) -> bool:
    """Whether the library that draws pages finds the first one; it does not parse the page for this."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(source.open())
        try:
            document.get_page_size(0)
        finally:
            document.close()
    except (pypdfium2.PdfiumError, ValueError, IndexError):
        return False
    return True


def _is_signed(root: Any) -> bool:
    """Whether a signature's field is filled in, or the document is certified."""
    if _has(root, "/Perms", "/DocMDP"):
        return True
    fields = _get(_get(root, "/AcroForm"), "/Fields")
    left = [_MAX_FIELDS]
    return fields is not None and _any_signature(fields, left, 0)


def _any_signature(fields: Any, left: list[int], depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    try:
        listed = list(fields)
    except (TypeError, ValueError):
        return False
    for each in listed:
        left[0] -= 1
        if left[0] < 0:
            return False
        value = _get(each, "/V")
        if value is not None and (_get(each, "/FT") == "/Sig" or _has(value, "/ByteRange")):
            return True
        kids = _get(each, "/Kids")
        if kids is not None and _any_signature(kids, left, depth + 1):
            return True
    return False


def _has(node: Any, *names: str) -> bool:
    for name in names:
        node = _get(node, name)
    return node is not None


def _get(node: Any, name: str) -> Any:
    try:
        return node.get(name) if node is not None else None
    except (AttributeError, TypeError, ValueError, KeyError):
        return None


def _by_drawing(source: Source, limits: FileLimits, why: Exception) -> Facts:
    """What the library that draws pages makes of a file that the other cannot put together: it is more forgiving."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(source.open())
        try:
            pages = len(document)
            check_pages(pages, limits)
            width, height = document.get_page_size(0)
        finally:
            document.close()
    except (pypdfium2.PdfiumError, ValueError, IndexError):
        raise _unreadable(source) from why
    if not (0 < width < _MAX_POINTS and 0 < height < _MAX_POINTS):
        raise _unreadable(source) from why
    return facts(
        Format.PDF,
        notes=[Note.REPAIRED, Note.PARTLY_UNREADABLE],
        pages=pages,
        details={"page_width_pt": round(width, 2), "page_height_pt": round(height, 2)},
    )


def _unreadable(source: Source) -> Exception:
    """Without its end it is one that was broken off, and could not be put together either."""
    return FileDamaged() if b"%%EOF" in source.tail(4096) else FileTruncated()

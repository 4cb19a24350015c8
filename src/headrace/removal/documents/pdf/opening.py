"""Opens a PDF, and says what stands in the way."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pikepdf
from pikepdf.exceptions import PikepdfError

from headrace.removal.errors import DocumentEncrypted, DocumentUnreadable

MAX_PAGES = 20_000


@contextmanager
def opened(path: str, password: str | None) -> Iterator[pikepdf.Pdf]:
    """Raises ``DocumentEncrypted`` and ``DocumentUnreadable``."""
    try:
        pdf = pikepdf.open(path, password=password or "", suppress_warnings=True)
    except pikepdf.PasswordError:
        wrong = "The password is wrong" if password else "It is encrypted: give its password with --password-file"
        raise DocumentEncrypted(f"{path} cannot be opened. {wrong}.") from None
    except (PikepdfError, ValueError, RuntimeError) as exc:
        raise DocumentUnreadable(f"{path} is not a PDF that can be read: {_said(exc)}") from exc
    with pdf:
        count = _count_pages(pdf, path)
        if not 0 < count <= MAX_PAGES:
            how_many = "no pages" if count == 0 else f"{count:,} pages, and {MAX_PAGES:,} are read at most"
            raise DocumentUnreadable(f"{path} has {how_many}.")
        yield pdf


def _count_pages(pdf: pikepdf.Pdf, path: str) -> int:
    try:
        return len(pdf.pages)
    except (PikepdfError, RuntimeError, RecursionError) as exc:
        raise DocumentUnreadable(f"{path} has pages that cannot be read: {_said(exc)}") from exc


def _said(exc: Exception) -> str:
    return str(exc).splitlines()[0][:200] if str(exc) else type(exc).__name__


def is_signed(pdf: pikepdf.Pdf) -> bool:
    """Whether a signature covers the file: in a field, or as permission of its author."""
    permissions = pdf.Root.get("/Perms")
    if isinstance(permissions, pikepdf.Dictionary) and any(_is_signature(each) for _, each in permissions.items()):
        return True
    form = pdf.Root.get("/AcroForm")
    fields = form.get("/Fields") if isinstance(form, pikepdf.Dictionary) else None
    return isinstance(fields, pikepdf.Array) and _any_signed(fields, 0)


def _any_signed(fields: Any, depth: int) -> bool:
    if depth > 16:
        return False
    for field in fields:
        if not isinstance(field, pikepdf.Dictionary):
            continue
        if _is_signature(field.get("/V")):
            return True
        children = field.get("/Kids")
        if isinstance(children, pikepdf.Array) and _any_signed(children, depth + 1):
            return True
    return False


def _is_signature(value: Any) -> bool:
    return isinstance(value, pikepdf.Dictionary) and "/ByteRange" in value

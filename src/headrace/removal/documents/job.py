"""One document of any kind: recognised by its content, and passed to the code of that kind.

A file from anywhere may be made to harm: call ``process`` in a child process, as ``confined_documents.carry_out`` does.
"""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from headrace.removal.candidates import DocumentOrder, DocumentReport
from headrace.removal.errors import DocumentEncrypted, DocumentUnreadable

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEAD = 1024  # bytes in which a PDF says that it is one
_MOST_OLE = 1 << 30


class DocumentKind(StrEnum):
    PDF = "pdf"
    SLIDES = "pptx"
    OLD_SLIDES = "ppt"  # the container of all older Office files


def recognise(path: Path) -> DocumentKind | None:
    """What kind of document a file is, by its first bytes; None for pictures and what cannot be read."""
    try:
        if not path.is_file():  # reading from a pipe would wait for its writer
            return None
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    if head.startswith(b"PK\x03\x04"):
        return DocumentKind.SLIDES
    if head.startswith(_OLE):
        return DocumentKind.OLD_SLIDES
    return DocumentKind.PDF if b"%PDF-" in head else None


def process(order: DocumentOrder, progress: Callable[[int], object]) -> DocumentReport:
    """Look for marks in a document, and take off what the order means. Raises what the kind's own job raises."""
    kind = recognise(Path(order.source))
    if kind is DocumentKind.PDF:
        from headrace.removal.documents.pdf import job as pdf_job

        return pdf_job.process(order, progress)
    from headrace.removal.documents.slides import job as slides_job

    if kind is DocumentKind.SLIDES:
        return slides_job.process(order, progress)
    if kind is DocumentKind.OLD_SLIDES:
        require_old_slides(order.source)
        return slides_job.process_legacy(order, progress)
    raise DocumentUnreadable(f"{order.source} is neither a PDF nor a presentation.")


def require_old_slides(path: str) -> None:
    """The names of its streams tell what an old container holds."""
    with Path(path).open("rb") as file:
        content = file.read(_MOST_OLE)
    if "EncryptedPackage".encode("utf-16-le") in content:
        raise DocumentEncrypted(
            f"{path} is encrypted: save it without a password first; its kind cannot be opened here."
        )
    if "PowerPoint Document".encode("utf-16-le") not in content:
        raise DocumentUnreadable(f"{path} is an Office file, but no presentation.")

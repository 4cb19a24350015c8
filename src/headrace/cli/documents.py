"""``headrace detect`` and the options of ``headrace remove`` for PDFs and slides."""

import re
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.bars import watched
from headrace.cli.output import number_of, out, print_json, print_table, say
from headrace.removal.candidates import Box, Candidate, DocumentOrder, Mode
from headrace.removal.documents import confined as confined_documents
from headrace.removal.documents.job import recognise

Only = Annotated[
    list[int] | None, typer.Option(help="Take off only this candidate, as detect numbers them. Repeatable.", min=1)
]
ModeOption = Annotated[
    Mode, typer.Option(help="auto removes certain marks; manual, for documents, only the marks named by --only.")
]
Pages = Annotated[
    str | None, typer.Option(help="Of documents, change only these pages: 2-9, or 1,4-6.", metavar="RANGES")
]
PasswordFile = Annotated[
    Path | None, typer.Option(help="The first line of this file is the password of an encrypted document.")
]
Overlay = Annotated[
    Path | None,
    typer.Option(help="Of a PDF or a clip: write the page or frame that shows most to this PNG file, with boxes."),
]
BreakSignature = Annotated[
    bool, typer.Option("--break-signature", help="Change a signed document; its signature does not hold afterwards.")
]

_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
_MAX_PAGES_LISTED = 6


def is_document(file: Path) -> bool:
    return recognise(file) is not None


def order(
    mode: Mode,
    only: list[int] | None,
    pages: str | None,
    password_file: Path | None,
    *,
    break_signature: bool,
    force: bool,
) -> DocumentOrder:
    """What the options ask for, without the files."""
    return DocumentOrder(
        "",
        mode=mode,
        only=tuple(only or ()),
        pages=_ranges(pages),
        password=read_password(password_file),
        break_signature=break_signature,
        force=force,
    )


def read_password(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return file.read_text().partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as exc:
        raise typer.BadParameter(f"{file} cannot be read: {exc}", param_hint="--password-file") from exc


def _ranges(text: str | None) -> tuple[tuple[int, int], ...]:
    if text is None:
        return ()
    matches = [_RANGE.fullmatch(part.strip()) for part in text.split(",")]
    ranges = [(int(each[1]), int(each[2] or each[1])) for each in matches if each is not None]
    if len(ranges) < len(matches) or any(first < 1 or last < first for first, last in ranges):
        raise typer.BadParameter(f"{text} is not pages such as 2-9 or 1,4-6", param_hint="--pages")
    return tuple(ranges)


def detect(order: DocumentOrder, *, json: bool) -> None:
    """Print the possible marks in a document; exits with 1 if there are none."""
    file = order.source
    with watched(f"looking at {file}") as on_progress:
        report = confined_documents.carry_out(order, on_progress=on_progress)
    if json:
        print_json(report.as_json())
    elif report.candidates:
        print_table(("#", "score", "what", "pages", "where", "text", "why"), [_row(each) for each in report.candidates])
        say(_advice(report.candidates))
    else:
        out.print(f"no mark found in {number_of(report.pages, 'page')}")
    _warn(report.warnings)
    if not report.candidates:
        raise typer.Exit(1)


def _row(each: Candidate) -> tuple[object, ...]:
    return (
        each.id,
        f"{each.score:.2f}",
        each.kind,
        _pages(each.pages),
        _place(each.box),
        each.text,
        "; ".join(each.reasons),
    )


def _pages(pages: tuple[int, ...]) -> str:
    if not pages:
        return "none"
    if len(pages) > 1 and pages[-1] - pages[0] == len(pages) - 1:
        return f"{pages[0]}-{pages[-1]}"
    more = ", …" if len(pages) > _MAX_PAGES_LISTED else ""
    return ", ".join(str(page) for page in pages[:_MAX_PAGES_LISTED]) + more


def _place(box: Box) -> str:
    return f"{box.width:.0f} x {box.height:.0f} at {box.left:.0f}, {box.top:.0f}"


def _advice(candidates: tuple[Candidate, ...]) -> str:
    certain = [each.id for each in candidates if each.certain]
    if len(certain) == len(candidates):
        return "remove takes all of them off"
    sure = f"remove takes off {', '.join(map(str, certain))}" if certain else "remove takes off none by itself"
    return f"{sure}; name what else is a mark with --only"


def _warn(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        say(f"note: {warning}")

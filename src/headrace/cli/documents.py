"""``headrace detect`` and ``headrace remove`` for PDFs and slides, and for many files of any kind."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.output import err, number_of, out, print_json, print_table, progress, say
from headrace.cli.signals import ending_in_order
from headrace.errors import HeadraceError
from headrace.removal import confined, confined_documents
from headrace.removal.candidates import Box, Candidate, DocumentOrder, DocumentReport, Mode, Outcome
from headrace.removal.documents import recognise
from headrace.removal.errors import TargetUnusable
from headrace.removal.report import Order, Report

Only = Annotated[
    list[int] | None, typer.Option(help="Take off only this candidate, as detect numbers them. Repeatable.", min=1)
]
ModeOption = Annotated[
    Mode, typer.Option(help="auto takes off what is certain; manual, of documents, only what --only names.")
]
Pages = Annotated[
    str | None, typer.Option(help="Of documents, change only these pages: 2-9, or 1,4-6.", metavar="RANGES")
]
PasswordFile = Annotated[
    Path | None, typer.Option(help="The first line of this file is the password of an encrypted document.")
]
Overlay = Annotated[
    Path | None,
    typer.Option(help="Write the page with the surest candidate of a PDF to this PNG file, with a box around each."),
]
BreakSignature = Annotated[
    bool, typer.Option("--break-signature", help="Change a signed document; its signature does not hold afterwards.")
]
PictureOrder = Callable[[str, str], Order]

_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
_MOST_PAGES_TOLD = 6


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
    if mode is Mode.MANUAL and not only:
        raise typer.BadParameter("manual takes off what --only names: add it", param_hint="--mode")
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
    found = [_RANGE.fullmatch(part.strip()) for part in text.split(",")]
    ranges = [(int(each[1]), int(each[2] or each[1])) for each in found if each is not None]
    if len(ranges) < len(found) or any(first < 1 or last < first for first, last in ranges):
        raise typer.BadParameter(f"{text} is not pages such as 2-9 or 1,4-6", param_hint="--pages")
    return tuple(ranges)


def target_of(file: Path, to: Path | None) -> Path:
    """Beside the file, unless a place was named; under its own name if that is a folder."""
    if to is None:
        return file.parent / f"{file.stem}.clean{file.suffix}"
    return to / file.name if to.is_dir() else to


def detect(asked: DocumentOrder, *, json: bool) -> None:
    """Print what may be a mark in a document; exits with 1 if nothing is."""
    file = asked.source
    with _watched(f"looking at {file}") as on_progress:
        report = confined_documents.carry_out(asked, on_progress=on_progress)
    if json:
        print_json(report.as_json())
    elif report.candidates:
        print_table(("#", "score", "what", "pages", "where", "text", "why"), [_row(each) for each in report.candidates])
        say(_advice(report.candidates))
    else:
        out.print(f"no mark found in {number_of(report.pages, 'page')}", markup=False)
    _warn(report.warnings)
    if not report.candidates:
        raise typer.Exit(1)


def remove(files: list[Path], to: Path | None, wanted: DocumentOrder, picture: PictureOrder, *, json: bool) -> None:
    """Take the marks off one document or many files; one that fails does not keep the others from it.

    Exits with 1 if a file is left as it is.
    """
    if len(files) > 1:
        _require_folder(files, to)
        if wanted.only:
            raise typer.BadParameter("candidates have other numbers in every file: name one file", param_hint="--only")
    done = [_remove_one(file, target_of(file, to), wanted, picture, at, len(files)) for at, file in enumerate(files, 1)]
    if not json:
        for each in done:
            if each.removed:
                out.print(each.as_json["to"], markup=False)
    else:
        print_json(done[0].as_json if len(files) == 1 else [each.as_json for each in done])
    if not all(each.removed for each in done):
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class _Done:
    removed: bool
    as_json: dict[str, Any]


def _remove_one(file: Path, target: Path, wanted: DocumentOrder, picture: PictureOrder, number: int, of: int) -> _Done:
    doing = f"working on {file}" if of == 1 else f"{number} of {of}: working on {file}"
    report: DocumentReport | Report
    try:
        with _watched(doing) as on_progress:
            if is_document(file):
                asked = replace(wanted, source=str(file), result=str(target))
                report = confined_documents.carry_out(asked, on_progress=on_progress)
            else:
                report = confined.carry_out(picture(str(file), str(target)), on_progress=on_progress)
    except HeadraceError as exc:
        if of == 1:
            raise
        say(f"{file}: {exc.message}")
        return _Done(False, {"file": str(file), "to": None, "error": exc.code, "message": exc.message})
    return _told(file, target, report, wanted)


def _told(file: Path, target: Path, report: DocumentReport | Report, wanted: DocumentOrder) -> _Done:
    if isinstance(report, DocumentReport):
        removed, warnings = report.outcome is Outcome.REMOVED, report.warnings
        said = _summary(report, wanted)
    else:
        assert report.removal is not None
        removed, warnings = report.removal.removed, report.removal.warnings
        said = report.removal.reason or f"confidence {report.removal.confidence:.2f}"
        if report.removal.poor:
            said += "; a poor result: look at it before you use it"
    say(f"{target if removed else file}: {said}")
    _warn(warnings)
    return _Done(removed, {"file": str(file), "to": str(target) if removed else None, **report.as_json()})


def _summary(report: DocumentReport, wanted: DocumentOrder) -> str:
    if report.outcome is not Outcome.REMOVED:
        return report.reason or "nothing was removed"
    gone = [each for each in report.candidates if each.id in report.removed]
    pages = {page for each in gone for page in each.pages if wanted.takes_page(page)}
    return f"{number_of(len(gone), 'mark')} taken off {number_of(len(pages), 'page')} in {report.seconds:.1f} s"


def _require_folder(files: list[Path], to: Path | None) -> None:
    if to is None:
        return
    if not to.is_dir():
        raise TargetUnusable(f"{to} is no folder: the results of {len(files)} files need one. Make it first.")
    names = [file.name for file in files]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TargetUnusable(
            f"Two of the files are called {twice}, and their results go to one folder: do one after the other."
        )


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
    more = ", …" if len(pages) > _MOST_PAGES_TOLD else ""
    return ", ".join(str(page) for page in pages[:_MOST_PAGES_TOLD]) + more


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


@contextmanager
def _watched(doing: str) -> Iterator[Callable[[int], object] | None]:
    """With a line that says how far it is, where it can be written over: a log wants one line for each file."""
    with ending_in_order(), progress(doing) as said:
        yield (lambda percent: said(f"{doing}: {percent} %")) if err.is_terminal else None

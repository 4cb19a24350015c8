"""``headrace remove`` for many files of any kind, and for single ones that are not pictures."""

import glob
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from headrace.cli import clips
from headrace.cli.bars import Bars, OnProgress, progress_bars
from headrace.cli.output import POOR_RESULT, number_of, out, print_json, say
from headrace.cli.signals import ending_in_order
from headrace.errors import HeadraceError
from headrace.removal.candidates import DocumentOrder, DocumentReport, Outcome
from headrace.removal.documents import confined as confined_documents
from headrace.removal.documents.job import recognise
from headrace.removal.errors import TargetUnusable
from headrace.removal.images import confined, confined_batch
from headrace.removal.report import Order, Report
from headrace.removal.video import confined as confined_videos
from headrace.removal.video.model import VideoOrder, VideoReport
from headrace.removal.video.recognising import is_clip

AnyReport = DocumentReport | Report | VideoReport

POOR = "a poor result: check it before you use it"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options for each kind of file, and the common ones."""

    picture: Order
    document: DocumentOrder
    clip: VideoOrder
    preview: bool = False
    same_mark: bool = False
    accept_poor: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    file: Path
    target: Path


@dataclass(frozen=True, slots=True)
class _Done:
    removed: bool
    poor: bool
    as_json: dict[str, Any]
    ending: str


def items_of(files: list[Path], to: Path | None) -> list[Item]:
    """Each file with its result's place. A folder stands for all files in it, and its results keep their places."""
    if len(files) == 1 and not files[0].is_dir():
        return [Item(files[0], target_of(files[0], to))]
    names: list[tuple[Path, Path]] = []
    for entry in files:
        if entry.is_dir():
            inside = sorted(each for each in entry.rglob("*") if each.is_file() and not _is_left_out(each, to))
            names += [(each, each.relative_to(entry)) for each in inside]
        else:
            names.append((entry, Path(entry.name)))
    _require_folder([name for _, name in names], to)
    items = []
    for file, name in names:
        target = target_of(file, None) if to is None else to / name
        if to is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
        items.append(Item(file, target))
    return items


def _is_left_out(file: Path, to: Path | None) -> bool:
    """Hidden files, and the results of an earlier run: cleaning a folder again means its sources."""
    if file.name.startswith(".") or (to is not None and file.is_relative_to(to)):
        return True
    stem = file.name.removesuffix(".preview.png") if file.name.endswith(".clean.preview.png") else file.stem
    return stem.endswith(".clean") and any(file.parent.glob(f"{glob.escape(stem.removesuffix('.clean'))}.*"))


def target_of(file: Path, to: Path | None) -> Path:
    """Beside the file, unless a place was named; under its own name if that is a folder."""
    if to is None:
        return file.parent / f"{file.stem}.clean{file.suffix}"
    return to / file.name if to.is_dir() else to


def _require_folder(names: list[Path], to: Path | None) -> None:
    if to is None:
        return
    if not to.is_dir():
        raise TargetUnusable(f"{to} is no folder: the results of {len(names)} files need one. Make it first.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TargetUnusable(
            f"Two of the files are called {twice}, and their results go to one folder: do one after the other."
        )


def remove(items: list[Item], wanted: Wanted, *, json: bool) -> None:
    """Take the marks off; one that fails does not keep the others from it. Exits with 1 if one is left as it is, with
    8 if a result is poor."""
    if len(items) > 1 and wanted.document.only:
        raise typer.BadParameter("candidates have other numbers in every file: name one file", param_hint="--only")
    with progress_bars(len(items)) as bars:
        done = _same_mark(items, wanted, bars) if wanted.same_mark else {}
        for number, item in enumerate(items):
            if number not in done:
                done[number] = _remove_one(item, wanted, bars, alone=len(items) == 1)
            bars.finished(len(done))
    ordered = [done[number] for number in range(len(items))]
    if len(items) > 1:
        say(_summary(ordered))
    if json:
        print_json(ordered[0].as_json if len(items) == 1 else [each.as_json for each in ordered])
    else:
        for each in ordered:
            if each.removed:
                out.print(each.as_json["to"])
    if not all(each.removed for each in ordered):
        raise typer.Exit(1)
    if any(each.poor for each in ordered) and not wanted.accept_poor:
        raise typer.Exit(POOR_RESULT)


def _remove_one(item: Item, wanted: Wanted, bars: Bars, *, alone: bool) -> _Done:
    try:
        with ending_in_order():
            report = _carried_out(item, wanted, bars.file(f"working on {item.file}"))
    except HeadraceError as exc:
        if alone:
            raise
        # Most messages begin with the file.
        say(exc.message if exc.message.startswith(f"{item.file} ") else f"{item.file}: {exc.message}")
        return _failed(item, exc)
    return _done(item, report, wanted)


def _summary(done: list[_Done]) -> str:
    """How many files came to which end, the good one first."""
    counts = Counter(each.ending for each in done)
    return f"{number_of(len(done), 'file')}: " + ", ".join(f"{counts[end]} {end}" for end in _ENDINGS if counts[end])


def _failed(item: Item, exc: HeadraceError) -> _Done:
    message = {"file": str(item.file), "to": None, "error": exc.code, "message": exc.message}
    return _Done(False, False, message, "could not be worked on")


def _carried_out(item: Item, wanted: Wanted, on_progress: OnProgress | None) -> AnyReport:
    source, target = str(item.file), str(item.target)
    preview = str(item.target.with_name(f"{item.target.stem}.preview.png")) if wanted.preview else None
    if is_clip(item.file):
        clip = replace(wanted.clip, source=source, result=target, preview=preview)
        return confined_videos.carry_out(clip, on_progress=on_progress)
    if recognise(item.file) is not None:
        document = replace(wanted.document, source=source, result=target, preview=preview)
        return confined_documents.carry_out(document, on_progress=on_progress)
    picture = replace(wanted.picture, source=source, result=target, compare=preview)
    return confined.carry_out(picture, on_progress=on_progress)


def _same_mark(items: list[Item], wanted: Wanted, bars: Bars) -> dict[int, _Done]:
    """The pictures among the files, all at once; those without a common finding are done one by one."""
    pictures = {
        number: item for number, item in enumerate(items) if not is_clip(item.file) and recognise(item.file) is None
    }
    with ending_in_order():
        reports = confined_batch.carry_out(
            [replace(wanted.picture, source=str(each.file), result=str(each.target)) for each in pictures.values()],
            on_progress=bars.file(f"looking at {number_of(len(pictures), 'picture')} together"),
        )
    values: dict[int, _Done] = {}
    for (number, item), report in zip(pictures.items(), reports, strict=True):
        if report is not None:
            values[number] = _done(item, report, wanted)
    return values


def _done(item: Item, report: AnyReport, wanted: Wanted) -> _Done:
    poor = False
    if isinstance(report, VideoReport):
        removed, warnings, summary = report.outcome is Outcome.REMOVED, report.warnings, clips.summary(report)
    elif isinstance(report, DocumentReport):
        removed, warnings = report.outcome is Outcome.REMOVED, report.warnings
        summary = _of_document(report, wanted.document)
    else:
        assert report.removal is not None
        removed, warnings = report.removal.removed, report.removal.warnings
        summary = report.removal.reason or f"confidence {report.removal.confidence:.2f}"
        if report.removal.poor:
            poor = True
            summary += f"; {POOR}" if report.removal.doubt is None else f"; {report.removal.doubt}; {POOR}"
    say(f"{item.target if removed else item.file}: {summary}")
    # For a document the warnings also name the parts that were not searched.
    for warning in warnings if removed or isinstance(report, DocumentReport) else ():
        say(f"note: {warning}")
    values = {"file": str(item.file), "to": str(item.target) if removed else None, **report.as_json()}
    return _Done(removed, poor, values, _ending(report, removed=removed, poor=poor))


_ENDINGS = (
    "cleaned",
    "poorly cleaned",
    "without a mark",
    "to be looked at",
    "left as it was",
    "could not be worked on",
)


def _ending(report: AnyReport, *, removed: bool, poor: bool) -> str:
    if removed:
        return "poorly cleaned" if poor else "cleaned"
    if isinstance(report, DocumentReport | VideoReport):
        ends = {Outcome.NO_MARK: "without a mark", Outcome.NEEDS_REVIEW: "to be looked at"}
        return ends.get(report.outcome or Outcome.FAILED, "left as it was")
    assert report.removal is not None
    if report.removal.needs_review:
        return "to be looked at"
    return "left as it was" if any(each.certain for each in report.regions) else "without a mark"


def _of_document(report: DocumentReport, wanted: DocumentOrder) -> str:
    if report.outcome is not Outcome.REMOVED:
        return report.reason or "nothing was removed"
    gone = [each for each in report.candidates if each.id in report.removed]
    pages = {page for each in gone for page in each.pages if wanted.takes_page(page)}
    return f"{number_of(len(gone), 'mark')} taken off {number_of(len(pages), 'page')} in {report.seconds:.1f} s"

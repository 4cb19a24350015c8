"""``headrace remove`` for one file or many, of any kind."""

import glob
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from headrace.cli.bars import Bars, progress_bars
from headrace.cli.output import POOR_RESULT, number_of, out, print_json, say
from headrace.cli.removal_tables import ENDINGS, ending, left, summary, warn
from headrace.cli.signals import ending_in_order
from headrace.errors import HeadraceError
from headrace.removal import runner
from headrace.removal.errors import TargetUnusable
from headrace.removal.images.shared_mark import MIN_VIEWS
from headrace.removal.media import media_of
from headrace.removal.order import Order
from headrace.removal.report import Outcome, Report


@dataclass(frozen=True, slots=True)
class Item:
    file: Path
    target: Path

    def order(self, options: Order, *, preview: bool = False) -> Order:
        shown = str(self.target.with_name(f"{self.target.stem}.preview.png")) if preview else options.comparison
        variant = str(self.target.with_stem(f"{self.target.stem}.variant")) if options.variant is not None else None
        return replace(options, source=str(self.file), result=str(self.target), comparison=shown, variant=variant)


@dataclass(frozen=True, slots=True)
class _Done:
    removed: bool
    poor: bool
    as_json: Mapping[str, Any]
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
    stem = stem.removesuffix(".variant") if stem.endswith(".clean.variant") else stem
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


def remove(items: list[Item], options: Order, *, preview: bool, same_mark: bool, accept_poor: bool, json: bool) -> None:
    """Take the marks off; one that fails does not keep the others from it. Exits with 1 if one is left as it is, with
    8 if one needs a look."""
    if len(items) > 1 and options.candidates:
        raise typer.BadParameter("candidates have other numbers in every file: name one file", param_hint="--only")
    with progress_bars(len(items)) as bars:
        done = _same_mark(items, options, bars) if same_mark else {}
        for number, item in enumerate(items):
            if number not in done:
                done[number] = _remove_one(item, item.order(options, preview=preview), bars, alone=len(items) == 1)
            bars.finished(len(done))
    ordered = [done[number] for number in range(len(items))]
    if len(items) > 1:
        say(_counted(ordered))
    if json:
        print_json(ordered[0].as_json if len(items) == 1 else [each.as_json for each in ordered])
    else:
        for each in ordered:
            if each.removed:
                out.print(each.as_json["to"])
    if not all(each.removed for each in ordered):
        raise typer.Exit(1)
    if any(each.poor for each in ordered) and not accept_poor:
        raise typer.Exit(POOR_RESULT)


def _remove_one(item: Item, order: Order, bars: Bars, *, alone: bool) -> _Done:
    try:
        with ending_in_order():
            report = runner.carry_out(order, on_progress=bars.file(f"working on {item.file}"))
    except HeadraceError as exc:
        if alone:
            raise
        # Most messages begin with the file.
        say(exc.message if exc.message.startswith(f"{item.file} ") else f"{item.file}: {exc.message}")
        message = {"file": str(item.file), "to": None, "error": exc.code, "message": exc.message}
        return _Done(False, False, message, "could not be worked on")
    return _done(item, report, order)


def _counted(done: list[_Done]) -> str:
    """How many files came to which end, the good one first."""
    counts = Counter(each.ending for each in done)
    return f"{number_of(len(done), 'file')}: " + ", ".join(f"{counts[end]} {end}" for end in ENDINGS if counts[end])


def _same_mark(items: list[Item], options: Order, bars: Bars) -> dict[int, _Done]:
    """The pictures among the files, all at once; those without a common finding are done one by one."""
    pictures = {number: item for number, item in enumerate(items) if media_of(item.file) == "IMAGE"}
    orders = [item.order(options) for item in pictures.values()]
    with ending_in_order():
        reports = runner.carry_out_batch(
            orders, on_progress=bars.file(f"looking at {number_of(len(pictures), 'picture')} together")
        )
    if not any(report is not None and report.facts.get("shared") for report in reports):
        few = f"{MIN_VIEWS} are needed" if len(pictures) < MIN_VIEWS else "they do not show one in the same place"
        say(f"{number_of(len(pictures), 'picture')} tell of no common mark ({few}): each is done by itself")
    return {
        number: _done(items[number], report, order)
        for number, order, report in zip(pictures, orders, reports, strict=True)
        if report is not None
    }


def _done(item: Item, report: Report, order: Order) -> _Done:
    media, removed = media_of(item.file), report.outcome is Outcome.REMOVED
    say(f"{item.target if removed else item.file}: {summary(report, order, media)}")
    if removed and order.variant is not None:
        made = Path(order.variant).exists()
        say(
            f"the other way of filling in: {order.variant}" if made else "there is only one way of filling in this mark"
        )
    if (stays := left(report, order)) is not None:
        say(stays)
    warn(report, media)
    values = {"file": str(item.file), "to": str(item.target) if removed else None, **report.as_json()}
    return _Done(removed, report.needs_look, values, ending(report))

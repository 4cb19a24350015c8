"""One presentation: opened, read, cleaned, written, checked. A pure job: it knows neither commands nor tasks."""

import shutil
import time
from dataclasses import replace
from pathlib import Path

from headrace.removal.candidates import (
    Candidate,
    Check,
    DocumentOrder,
    DocumentReport,
    Outcome,
    choose,
    nothing_chosen,
    require_known,
)
from headrace.removal.documents.slides.checking import check
from headrace.removal.documents.slides.deck import read_deck
from headrace.removal.documents.slides.editing import take_off
from headrace.removal.documents.slides.legacy import converted
from headrace.removal.documents.slides.package import Package
from headrace.removal.documents.slides.scanning import Found, pictured, scan
from headrace.removal.documents.slides.shapes import Shape
from headrace.removal.errors import DocumentSigned, TargetUnusable
from headrace.removal.progress import Progress

# How far the work is, in percent, when a stage ends.
_READ, _WRITTEN, _CHECKED = 60, 80, 100
CONVERTED = "converted by LibreOffice: look whether the layout is as it was"


def process(order: DocumentOrder, progress: Progress) -> DocumentReport:
    """Look for marks in a .pptx, and take off those that the order means if it names a result.

    Raises ``DocumentUnreadable``, ``DocumentSigned``, ``CandidateUnknown`` and ``TargetUnusable``.
    """
    began = time.monotonic()
    package = Package(order.source)
    try:
        return _process(package, order, progress, began)
    finally:
        package.close()


def process_legacy(order: DocumentOrder, progress: Progress) -> DocumentReport:
    """The same for a .ppt, by way of a .pptx; the result is of the kind that its name says."""
    began = time.monotonic()
    with converted(order.source, "pptx") as source:
        inner = source.with_name("cleaned.pptx")
        report = process(
            replace(order, source=str(source), result=None if order.result is None else str(inner)), progress
        )
        report = replace(report, format="ppt", warnings=(CONVERTED, *report.warnings))
        if report.outcome is Outcome.REMOVED and order.result is not None:
            if Path(order.result).suffix.lower() == ".pptx":
                _copy(inner, order.result)
            else:
                with converted(str(inner), "ppt") as old:
                    _copy(old, order.result)
        return replace(report, seconds=round(time.monotonic() - began, 3))


def _copy(source: Path, target: str) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as exc:
        raise TargetUnusable(f"{target} could not be written: {exc.strerror}") from exc


def _process(package: Package, order: DocumentOrder, progress: Progress, began: float) -> DocumentReport:
    deck = read_deck(package, order.source)
    found = scan(package, deck, lambda share: progress(round(_READ * share)))
    candidates = tuple(each.candidate for each in found)
    warnings: list[str] = []
    if (count := pictured(package, deck)) > 0:
        warnings.append(
            f"{_number_of(count)} covered by a picture: a mark that is part of the picture is not looked for. Save the "
            "picture, clean it with `headrace remove`, and put it in the old one's place."
        )

    def report(
        outcome: Outcome | None, reason: str | None, *, removed: tuple[int, ...] = (), checked: Check | None = None
    ) -> DocumentReport:
        progress(_CHECKED)
        seconds = round(time.monotonic() - began, 3)
        return DocumentReport(
            "pptx", deck.slides, candidates, outcome, reason, removed, checked, tuple(warnings), seconds
        )

    require_known(candidates, order)
    if order.result is None:
        return report(None, None)
    chosen = choose(candidates, order)
    if not chosen:
        return report(*nothing_chosen(candidates))
    if any(name.startswith("_xmlsignatures/") for name in package.names()):
        if not order.break_signature:
            raise DocumentSigned(
                f"{order.source} is signed, and a change breaks that: allow it with --break-signature."
            )
        warnings.append("the signature does not hold any more")
    shapes = _shapes(found, chosen, order, warnings)
    if not shapes:
        return report(Outcome.NO_MARK, "No mark is on the slides that were named alone.")
    _write(package, shapes, order.result)
    progress(_WRITTEN)
    checked = check(order.source, order.result, shapes)
    if not checked.passed:
        Path(order.result).write_bytes(b"")  # a result that is not good is not left there
        return report(Outcome.FAILED, checked.reason, checked=checked)
    return report(Outcome.REMOVED, None, removed=tuple(each.id for each in chosen), checked=checked)


def _number_of(count: int) -> str:
    return "1 slide is" if count == 1 else f"{count} slides are"


def _shapes(
    found: tuple[Found, ...], chosen: tuple[Candidate, ...], order: DocumentOrder, warnings: list[str]
) -> list[Shape]:
    """The shapes to take off. One that slides share can only go from all of them."""
    numbers = {each.id for each in chosen}
    shapes = [shape for each in found if each.candidate.id in numbers for shape in each.shapes]
    if not order.pages:
        return shapes
    taken = [shape for shape in shapes if shape.sheet.pages and all(map(order.takes_page, shape.sheet.pages))]
    shared = [s for s in shapes if s not in taken and any(map(order.takes_page, s.sheet.pages))]
    if shared:
        warnings.append(f"a mark is on the {shared[0].sheet.level} of other slides, too, and was left there")
    return taken


def _write(package: Package, shapes: list[Shape], target: str) -> None:
    take_off(package, shapes)
    try:
        package.write(target)
    except OSError as exc:
        raise TargetUnusable(f"{target} could not be written: {exc.strerror or exc}") from exc

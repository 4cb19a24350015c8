"""One PDF: opened, read, cleaned, written, checked. A pure job: it knows neither commands nor tasks."""

import time
from collections.abc import Iterable
from dataclasses import replace

import pikepdf
from pikepdf.exceptions import PikepdfError

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
from headrace.removal.documents.pdf.annotations import notes_of
from headrace.removal.documents.pdf.bombs import TooLarge
from headrace.removal.documents.pdf.checking import check
from headrace.removal.documents.pdf.drawings import placed
from headrace.removal.documents.pdf.editing import Editor, Taken
from headrace.removal.documents.pdf.layers import drop_watermark_layers
from headrace.removal.documents.pdf.opening import is_signed, opened
from headrace.removal.documents.pdf.overlay import draw_overlay, draw_sides
from headrace.removal.documents.pdf.pages import PageFrame, frame_of
from headrace.removal.documents.pdf.reading import Reader
from headrace.removal.documents.pdf.scan_editing import clean, learnt
from headrace.removal.documents.pdf.scanning import Scan, scan
from headrace.removal.documents.pdf.scans import FEWEST, ScanMark
from headrace.removal.errors import DocumentSigned, DocumentUnreadable, TargetUnusable
from headrace.removal.progress import Progress

# How far the work is, in percent, when a stage ends.
_READ, _EDITED, _WRITTEN, _CHECKED = 50, 75, 85, 100
_NOT_NAMED = (Outcome.NO_MARK, "No mark is on the pages that were named.")
_TOO_FAINT = (
    Outcome.FAILED,
    "The mark in the scanned pages could not be separated from the grain of the paper, or their "
    "pictures cannot be read: the result would be worse than the original.",
)


def process(order: DocumentOrder, progress: Progress) -> DocumentReport:
    """Look for marks, and take off those that the order means if it names a result.

    Writes to the file that the order names only if the check of the result passes; one that fails is not left there.
    Raises ``DocumentUnreadable``, ``DocumentEncrypted``, ``DocumentSigned``, ``CandidateUnknown``, ``TargetUnusable``.
    """
    began = time.monotonic()
    with opened(order.source, order.password) as pdf:
        try:
            return _process(pdf, order, progress, began)
        except TooLarge as exc:
            raise DocumentUnreadable(f"{order.source} cannot be read: {exc}.") from exc
        except (PikepdfError, RecursionError) as exc:
            raise DocumentUnreadable(f"{order.source} cannot be read: {str(exc)[:200]}") from exc


def _process(pdf: pikepdf.Pdf, order: DocumentOrder, progress: Progress, began: float) -> DocumentReport:
    reader = Reader()
    seen = scan(pdf, reader, lambda share: progress(round(_READ * share)))
    candidates = tuple(found.candidate for found in seen.found)
    warnings = _warnings(pdf, seen)

    def report(
        outcome: Outcome | None, reason: str | None, *, removed: tuple[int, ...] = (), checked: Check | None = None
    ) -> DocumentReport:
        progress(_CHECKED)
        seconds = round(time.monotonic() - began, 3)
        return DocumentReport(
            "pdf", seen.pages, candidates, outcome, reason, removed, checked, tuple(warnings), seconds
        )

    require_known(candidates, order)
    if order.overlay is not None and candidates:
        frame = frame_of(pdf.pages[candidates[0].pages[0] - 1])
        draw_overlay(order.source, order.overlay, password=order.password, candidates=candidates, frame=frame)
    if order.result is None:
        return report(None, None)
    chosen = choose(candidates, order)
    if not chosen:
        return report(*nothing_chosen(candidates))
    if is_signed(pdf):
        if not order.break_signature:
            raise DocumentSigned(
                f"{order.source} is signed, and a change breaks that: allow it with --break-signature."
            )
        warnings.append("the signature does not hold any more")
    taken, frames, separable = _take_off(pdf, reader, seen, chosen, order, progress)
    if not separable or not any(each.drawings for each in taken.values()):
        return report(*(_NOT_NAMED if separable else _TOO_FAINT))
    _write(pdf, order.result)
    progress(_WRITTEN)
    checked = check(order.source, order.result, password=order.password, taken=taken, frames=frames)
    checked = _again(checked, order, _signatures(seen, chosen), taken)
    if not checked.passed:
        _discard(order.result)
        return report(Outcome.FAILED, checked.reason, checked=checked)
    if order.preview is not None:
        draw_sides(order.source, order.result, order.preview, password=order.password, number=min(taken))
    return report(Outcome.REMOVED, None, removed=tuple(each.id for each in chosen), checked=checked)


def _take_off(
    pdf: pikepdf.Pdf,
    reader: Reader,
    seen: Scan,
    chosen: tuple[Candidate, ...],
    order: DocumentOrder,
    progress: Progress,
) -> tuple[dict[int, Taken], dict[int, PageFrame], bool]:
    """What went from which page, and whether every mark in scans could be separated from the paper."""
    editor = Editor(pdf, reader, _signatures(seen, chosen))
    on_pages = sorted({page for each in chosen for page in each.pages if order.takes_page(page)})
    taken: dict[int, Taken] = {}
    frames: dict[int, PageFrame] = {}
    for count, number in enumerate(on_pages, 1):
        page = pdf.pages[number - 1]
        lost = editor.page(page)
        if lost.drawings:
            taken[number], frames[number] = lost, frame_of(page)
        progress(_READ + round((_EDITED - _READ) * count / len(on_pages)))
    scanned = [found.scanned for found in seen.found if found.candidate in chosen and found.scanned is not None]
    separable = all(_clean_scans(pdf, mark, order, taken, frames, progress) for mark in scanned)
    layers = {found.candidate.id for found in seen.found if found.candidate.kind == "layer"}
    if layers and layers <= {each.id for each in chosen} and not order.pages:
        drop_watermark_layers(pdf)
    return taken, frames, separable


def _clean_scans(
    pdf: pikepdf.Pdf,
    mark: ScanMark,
    order: DocumentOrder,
    taken: dict[int, Taken],
    frames: dict[int, PageFrame],
    progress: Progress,
) -> bool:
    matte = learnt(pdf, mark, lambda: progress(_EDITED))
    if matte is None:
        return False
    # A picture that a page shows which is to stay as it is stays, too; one that several show is cleaned once.
    kept = {page.picture for page in mark.pages if not order.takes_page(page.number)}
    done: dict[tuple[int, int], bool] = {}
    for page in mark.pages:
        progress(_EDITED)
        if page.picture in kept:
            continue
        if page.picture not in done:
            done[page.picture] = clean(pdf, page, matte)
        if done[page.picture]:
            lost = taken.setdefault(page.number, Taken())
            lost.drawings += 1
            lost.quads.append(mark.quad(page))
            frames[page.number] = page.frame
    return True


def _signatures(seen: Scan, chosen: tuple[Candidate, ...]) -> frozenset[int]:
    numbers = {each.id for each in chosen}
    return frozenset().union(*(found.signatures for found in seen.found if found.candidate.id in numbers))


def _again(checked: Check, order: DocumentOrder, gone: frozenset[int], pages: Iterable[int]) -> Check:
    """The result is read again: the removed drawings may not occur in it, whatever they look like."""
    if not checked.passed or order.result is None:
        return checked
    with opened(order.result, order.password) as pdf:
        reader = Reader()
        for number in pages:
            page = pdf.pages[number - 1]
            drawn = {each.drawing.signature for each in placed(reader.page(page))}
            drawn |= {note.drawing.signature for note in notes_of(reader, page)}
            if drawn & gone:
                return replace(checked, passed=False, reason=f"The mark is still on page {number}.", residue_after=1.0)
    return checked


def _write(pdf: pikepdf.Pdf, target: str) -> None:
    """Rewritten as a whole: what nothing points to, and former revisions with the mark, are not in the new file."""
    try:
        pdf.remove_unreferenced_resources()
        # The same document gives the same bytes each time; an encrypted one needs random numbers.
        pdf.save(
            target,
            linearize=pdf.is_linearized,
            encryption=pdf.is_encrypted,
            deterministic_id=not pdf.is_encrypted,
        )
    except OSError as exc:
        raise TargetUnusable(f"{target} could not be written: {exc.strerror or exc}") from exc


def _discard(target: str) -> None:
    try:
        with open(target, "wb"):  # noqa: PTH123
            pass
    except OSError as exc:
        raise TargetUnusable(f"{target} could not be written: {exc.strerror or exc}") from exc


def _warnings(pdf: pikepdf.Pdf, seen: Scan) -> list[str]:
    warnings = []
    if seen.scanned:
        pages = "1 page is a picture" if seen.scanned == 1 else f"{seen.scanned} pages are pictures"
        warnings.append(f"{pages}: a mark in the picture is seen only where {FEWEST} of one size have it in common")
    if seen.unreadable:
        warnings.append(f"{seen.unreadable} parts of pages cannot be read and are left as they are")
    if pdf.get_warnings():
        warnings.append("the file is damaged, and was read as well as it can be")
    return warnings

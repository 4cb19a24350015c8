"""The stages of one document: a PDF or a presentation."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
from numpy.typing import NDArray

from headrace.removal.candidates import MOST_CANDIDATES as _MOST
from headrace.removal.candidates import Candidate, DocumentOrder, DocumentReport, Mode, Outcome
from headrace.removal.documents import job
from headrace.removal.documents.job import DocumentKind
from headrace.removal.documents.slides.job import CONVERTED
from headrace.removal.errors import CandidateUnknown
from headrace.removal.images.comparison import save_crops
from headrace.removal.order import (
    FailureCode,
    Hint,
    Names,
    Rectangle,
    RemovalOrder,
    StageOrder,
    StageReport,
    changed_pages,
)
from headrace.removal.previewing import write_preview
from headrace.removal.progress import Progress
from headrace.removal.verdict import Verdict

Picture = NDArray[np.uint8]

_PAGE_SIDE = 1400.0  # pixels of the longer side of a page that is drawn for the comparison


def prepare(order: StageOrder, progress: Progress) -> StageReport:
    """Whether it is a document; what is in it is read when marks are looked for."""
    source = order.path(Names.SOURCE)
    kind = job.recognise(Path(source))
    progress(50)
    if kind is None:
        return StageReport(refused=FailureCode.UNREADABLE)
    if kind is DocumentKind.OLD_SLIDES:
        job.require_old_slides(source)
    return StageReport({"format": str(kind)})


def detect(order: StageOrder, progress: Progress) -> StageReport:
    report = job.process(DocumentOrder(_source(order), password=order.password), progress)
    chosen = _chosen(report.candidates, order.order)
    facts = {"pages": report.pages, "chosen": chosen, "warnings": _warnings(order, report)}
    candidates = [_shown(each) for each in report.candidates[:_MOST]]
    if chosen:
        return StageReport(facts, candidates)
    return StageReport(facts, candidates, refused=FailureCode.NEEDS_REVIEW if candidates else FailureCode.NO_MARK)


def inpaint(order: StageOrder, progress: Progress) -> StageReport:
    """Take off what was chosen, and hold the result against the original: page by page, object by object."""
    wanted = order.order
    result = Names.CLEANED if _is_old(order) and wanted.output_format == DocumentKind.OLD_SLIDES else order.result
    report = job.process(
        DocumentOrder(
            _source(order),
            result=order.path(result),
            mode=Mode.MANUAL,
            only=tuple(order.earlier["chosen"]),
            pages=tuple(changed_pages(wanted.pages, wanted.hints, named=bool(wanted.candidates))),
            password=order.password,
            break_signature=wanted.break_signature,
        ),
        progress,
    )
    facts: dict[str, Any] = {"removed": list(report.removed), "warnings": _warnings(order, report)}
    if report.check is not None:
        facts |= {"check": asdict(report.check)}
    if report.outcome is Outcome.REMOVED:
        return StageReport(facts | {"verdict": Verdict.CLEAN}, keeps=[result])
    return StageReport(facts, refused=_refusal(report), reason=report.reason)


def package(order: StageOrder, progress: Progress) -> StageReport:
    result = order.path(order.result)
    write_preview(result, order.order.output_format, order.path(Names.PREVIEW))
    progress(50)
    facts: dict[str, Any] = {}
    if order.media == "PDF":
        number = _first_page(order)
        before, after = (_drawn(path, number, order.password) for path in (order.path(Names.SOURCE), result))
        if before.shape == after.shape:
            save_crops(order.path(Names.COMPARISON), before, after, (before != after).any(2))
            facts["compared_page"] = number
    return StageReport(facts)


def _is_old(order: StageOrder) -> bool:
    return order.order.format == DocumentKind.OLD_SLIDES


def _warnings(order: StageOrder, report: DocumentReport) -> list[str]:
    return [*report.warnings, CONVERTED] if _is_old(order) else list(report.warnings)


def _source(order: StageOrder) -> str:
    """The file that is worked on: of old slides, what they were converted to before."""
    return order.path(Names.CONVERTED if _is_old(order) else Names.SOURCE)


def _refusal(report: DocumentReport) -> FailureCode:
    if report.outcome is Outcome.NO_MARK:
        return FailureCode.NO_MARK
    check = report.check
    gone = check is not None and check.residue_after <= 0
    return FailureCode.DAMAGED if gone else FailureCode.MARK_REMAINS


def _shown(each: Candidate) -> dict[str, Any]:
    box = each.box
    return {
        "id": each.id,
        "kind": each.kind,
        "method": str(each.method),
        "score": round(each.score, 4),
        "certain": each.certain,
        "pages": list(each.pages[:100]),
        "copies": each.copies,
        "box": [box.left, box.top, box.width, box.height],
        "text": None if each.text is None else each.text[:120],
        "reasons": list(each.reasons)[:6],
    }


def _chosen(candidates: tuple[Candidate, ...], order: RemovalOrder) -> list[int]:
    """The candidates to take off: those that were named; those in a box; by itself only what is certain."""
    known = {each.id for each in candidates}
    if unknown := sorted(set(order.candidates) - known):
        raise CandidateUnknown(f"There is no candidate {unknown[0]}: there are {len(known)}.")
    if order.candidates:
        chosen = [each for each in candidates if each.id in order.candidates]
    elif any(hint.boxes or hint.polygons for hint in order.hints):
        chosen = [each for each in candidates if any(_is_in(each, hint) for hint in order.hints)]
    elif order.mode == "AUTO":
        chosen = [each for each in candidates if each.certain]
    else:
        chosen = []
    kept = [each for each in chosen if not any(_is_kept(each, hint) for hint in order.hints)]
    return [each.id for each in kept]


def _is_in(each: Candidate, hint: Hint) -> bool:
    boxes = [*hint.boxes, *(_around(corners) for corners in hint.polygons)]
    return _is_on(each, hint) and any(_overlap(each, box) for box in boxes)


def _is_kept(each: Candidate, hint: Hint) -> bool:
    return _is_on(each, hint) and any(_overlap(each, box) for box in hint.keep)


def _is_on(each: Candidate, hint: Hint) -> bool:
    return hint.pages is None or any(hint.pages[0] <= page <= hint.pages[1] for page in each.pages)


def _overlap(each: Candidate, box: Rectangle) -> bool:
    left, top, width, height = box
    own = each.box
    across = min(left + width, own.left + own.width) - max(left, own.left)
    along = min(top + height, own.top + own.height) - max(top, own.top)
    return across > 0 and along > 0


def _around(corners: list[tuple[int, int]]) -> Rectangle:
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    return min(xs), min(ys), max(1, max(xs) - min(xs)), max(1, max(ys) - min(ys))


def _first_page(order: StageOrder) -> int:
    """The first page that has one of the marks and was to be changed."""
    wanted = order.order
    chosen = set(order.earlier["chosen"])
    ranges = changed_pages(wanted.pages, wanted.hints, named=bool(wanted.candidates))
    pages = sorted({page for each in order.earlier["candidates"] if each["id"] in chosen for page in each["pages"]})
    changed = [page for page in pages if not ranges or any(first <= page <= last for first, last in ranges)]
    return int((changed or pages or [1])[0])


def _drawn(path: str, number: int, password: str | None) -> Picture:
    document = pypdfium2.PdfDocument(path, password=password)
    try:
        page = document[number - 1]
        picture = page.render(scale=min(_PAGE_SIDE / max(*page.get_size(), 1.0), 4.0)).to_pil().convert("RGB")
    finally:
        document.close()
    return np.asarray(picture)

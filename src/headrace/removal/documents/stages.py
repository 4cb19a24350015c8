"""The stages of one document: a PDF or a presentation."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pypdfium2
from numpy.typing import NDArray

from headrace.removal import media
from headrace.removal.documents.slides import legacy
from headrace.removal.errors import DocumentSigned, DocumentUnreadable
from headrace.removal.order import MAX_CANDIDATES, FailureCode, Hint, Names, Order, Progress, Rectangle, StageOrder
from headrace.removal.previews import write_preview
from headrace.removal.report import Candidate, Check, NotCleaned, Report, Verdict, require_known

Picture = NDArray[np.uint8]

_MIN_TIGHT_RATIO = 0.2  # of a box: what takes less of it is not all that the box is around
_BOXED_PERCENT = 50  # how far the work is while boxes are read
MAX_PAGE_SIDE_PX = 1400.0  # of a page that is drawn for the comparison


class Document(Protocol):
    """A document that was read: what may be a mark in it, and how to clean it."""

    format: str
    pages: int
    warnings: list[str]

    @property
    def candidates(self) -> tuple[Candidate, ...]: ...

    @property
    def is_signed(self) -> bool: ...

    def add_boxed(
        self, wanted: Sequence[tuple[Hint, Rectangle]], takes_page: Callable[[int], bool], heed: Callable[[], object]
    ) -> None: ...

    def clean(self, chosen: Sequence[Candidate], order: Order, result: str, progress: Progress) -> Check: ...


def prepare(order: StageOrder, progress: Progress) -> Report:
    """Whether it is a document; what is in it is read when marks are looked for."""
    source = order.order.source
    kind = media.document_of(source)
    progress(50)
    if kind is None:
        return Report(refused=FailureCode.UNREADABLE)
    if kind == "ppt":
        legacy.require_slides(source)
    return Report({"format": kind})


def detect(order: StageOrder, progress: Progress) -> Report:
    document = order.memory["document"] = _read(order, progress)
    candidates = document.candidates
    if order.order.overlay is not None and candidates:
        _draw_overlay(document, order.order.overlay)
    chosen = _chosen(candidates, order.order)
    report = Report(candidates=candidates[:MAX_CANDIDATES])
    code = None if chosen else FailureCode.NEEDS_REVIEW if report.suspects else FailureCode.NO_MARK
    facts = {"pages": document.pages, "chosen": chosen, "warnings": _warnings(order, document)}
    return replace(report, facts=facts, refused=code)


def inpaint(order: StageOrder, progress: Progress) -> Report:
    """Take off what was chosen, and hold the result against the original: page by page, object by object."""
    wanted = order.order
    document: Document = order.memory.pop("document", None) or _read(order, progress)
    chosen = [each for each in document.candidates if each.id in order.earlier["chosen"]]
    if document.is_signed:
        if not wanted.break_signature:
            raise DocumentSigned(
                f"{wanted.source} is signed, and a change breaks that: allow it with --break-signature."
            )
        document.warnings.append("the signature does not hold any more")
    result = order.path(Names.CLEANED) if _is_old(wanted) and wanted.output_format == "ppt" else order.result
    try:
        check = document.clean(chosen, wanted, result, progress)
    except NotCleaned as exc:
        return Report({"warnings": _warnings(order, document)}, refused=exc.code, reason=exc.reason)
    facts: dict[str, Any] = {"warnings": _warnings(order, document), "check": check.figures()}
    if check.passed:
        facts |= {"removed": [each.id for each in chosen], "verdict": Verdict.CLEAN}
        return Report(facts, keeps=[result.rpartition("/")[2]])
    code = FailureCode.DAMAGED if check.residue_after <= 0 else FailureCode.MARK_REMAINS
    return Report(facts, refused=code, reason=check.reason)


def package(order: StageOrder, progress: Progress) -> Report:
    """Pictures of the result."""
    facts: dict[str, Any] = {}
    wanted = order.order
    if not order.whole:
        write_preview(order.result, str(wanted.output_format), order.path(Names.PREVIEW))
    progress(50)
    if wanted.media != "PDF":
        return Report(facts)
    number = _first_page(order)
    if not order.whole:
        from headrace.removal.images.comparison import save_crops  # OpenCV takes long to load for a command

        before, after = (_drawn(path, number, wanted.password) for path in (wanted.source, order.result))
        if before.shape == after.shape:
            save_crops(order.path(Names.COMPARISON), before, after, (before != after).any(2))
            facts["compared_page"] = number
    if wanted.comparison is not None:
        from headrace.removal.documents.pdf.overlay import draw_sides

        draw_sides(wanted.source, order.result, wanted.comparison, password=wanted.password, number=number)
    return Report(facts)


def _is_old(order: Order) -> bool:
    return order.format == "ppt"


def _read(order: StageOrder, progress: Progress) -> Document:
    """The document, with what the user's boxes hold besides the marks that were found."""
    document = _opened(order, progress)
    boxes = [(hint, box) for hint in order.order.hints for box in hint.all_boxes]
    wanted = [
        (hint, box)
        for hint, box in boxes
        if not any(_is_named_by(box, each) for each in _in_box(document.candidates, hint, box))
    ]
    if wanted:
        document.add_boxed(wanted, order.order.takes_page, lambda: progress(_BOXED_PERCENT))
    return document


def _opened(order: StageOrder, progress: Progress) -> Document:
    # Of old slides the file is read that they were converted to before.
    source = order.path(Names.CONVERTED) if _is_old(order.order) else order.order.source
    kind = media.document_of(source)
    if kind == "pdf":
        from headrace.removal.documents.pdf.document import PdfDocument

        return PdfDocument(source, order.order.password, progress)
    if kind == "pptx":
        from headrace.removal.documents.slides.document import SlidesDocument

        return SlidesDocument(source, progress)
    raise DocumentUnreadable(f"{source} is neither a PDF nor a presentation.")


def _draw_overlay(document: Document, target: str) -> None:
    from headrace.removal.documents.pdf.document import PdfDocument

    if isinstance(document, PdfDocument):  # slides cannot be drawn here
        document.draw_overlay(target)


def _warnings(order: StageOrder, document: Document) -> list[str]:
    return [legacy.CONVERTED, *document.warnings] if _is_old(order.order) else list(document.warnings)


def _chosen(candidates: tuple[Candidate, ...], order: Order) -> list[int]:
    """The candidates to take off: those that were named; those in a box; by itself only what is certain."""
    require_known(len(candidates), order.candidates)
    if order.candidates:
        chosen = [each for each in candidates if each.id in order.candidates]
    elif order.has_place:
        chosen = [each for hint in order.hints for box in hint.all_boxes for each in _in_box(candidates, hint, box)]
    elif order.mode == "AUTO":
        chosen = [each for each in candidates if each.certain]
    else:
        chosen = []
    kept = [each for each in chosen if not any(_is_kept(each, hint) for hint in order.hints)]
    return sorted({each.id for each in kept})


def _in_box(candidates: tuple[Candidate, ...], hint: Hint, box: Rectangle) -> list[Candidate]:
    """What a box means: the marks that it touches. Only where it touches none, letterheads, foot lines and notes."""
    touched = [each for each in candidates if _is_on(each, hint) and _overlap(each, box)]
    return [each for each in touched if each.is_suspect] or touched


def _is_named_by(box: Rectangle, each: Candidate) -> bool:
    """Whether the box means this candidate alone: a mark, or something small in a wide box. A tight box means all of
    it: a word together with the frame around it."""
    return each.is_suspect or each.box.width * each.box.height < _MIN_TIGHT_RATIO * box[2] * box[3]


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


def _first_page(order: StageOrder) -> int:
    """The first page that has one of the marks and was to be changed."""
    chosen = set(order.earlier["chosen"])
    pages = sorted({page for each in order.earlier["candidates"] if each["id"] in chosen for page in each["pages"]})
    changed = [page for page in pages if order.order.takes_page(page)]
    return int((changed or pages or [1])[0])


def _drawn(path: str, number: int, password: str | None) -> Picture:
    document = pypdfium2.PdfDocument(path, password=password)
    try:
        page = document[number - 1]
        picture = page.render(scale=min(MAX_PAGE_SIDE_PX / max(*page.get_size(), 1.0), 4.0)).to_pil().convert("RGB")
    finally:
        document.close()
    return np.asarray(picture)

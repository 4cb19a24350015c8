"""What is drawn on which pages: every page is read once and forgotten, so that memory does not grow with pages.

A drawing is remembered when it looks like a mark, or from the second page on that has it.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from headrace.removal.documents.pdf.drawings import Drawing, Kind, Placed, placed
from headrace.removal.documents.pdf.geometry import Quad, angle_of, bounds
from headrace.removal.documents.pdf.pages import PageFrame
from headrace.removal.documents.pdf.scans import ScannedPage
from headrace.removal.documents.scoring import MAX_TRANSPARENT_ALPHA, Traits
from headrace.removal.documents.words import Words, watermark_words

_MAX_ENTRIES = 200_000
_MIN_SCANNED_RATIO = 0.85  # of the page is one picture
_TELLING_WORDS = (Words.ALL, Words.TRIAL, Words.LICENCE)  # worth a look even once
_MIN_SEEN_RATIO = 0.01  # what covers less is text for machines


@dataclass(slots=True)
class Entry:
    """All drawings of one signature."""

    example: Placed
    frame: PageFrame  # of the example's page
    page: int
    orders: list[int]  # its places among its neighbours there
    pages: list[int]
    copies: int = 1
    quads: list[Quad] = field(default_factory=list)  # on the example's page


class Tally:
    def __init__(self, *, remembers_single: bool = False) -> None:
        """``remembers_single``: what is on one page alone is remembered, whatever it looks like."""
        self._remembers_single = remembers_single
        self.entries: dict[int, Entry] = {}
        self.pages = 0
        self.scanned: list[ScannedPage] = []
        self._once: dict[int, int] = {}

    def add(self, page: int, frame: PageFrame, drawings: tuple[Drawing, ...]) -> None:
        self.pages += 1
        orders: dict[int, int] = defaultdict(int)
        scanned: ScannedPage | None = None
        written = False
        for each in placed(drawings):
            drawing = each.drawing
            orders[each.stream] += 1
            if drawing.picture is not None and frame.share(bounds([each.quad])) >= _MIN_SCANNED_RATIO:
                scanned = ScannedPage(page, frame, drawing.picture, each.quad)
            if not drawing.visible or each.alpha < _MIN_SEEN_RATIO:
                continue
            written = written or drawing.kind is Kind.TEXT
            self._count(page, frame, each, orders[each.stream])
        if scanned is not None and not written:
            self.scanned.append(scanned)

    def _count(self, page: int, frame: PageFrame, each: Placed, order: int) -> None:
        signature = each.drawing.signature
        if (entry := self.entries.get(signature)) is not None:
            entry.copies += 1
            if entry.pages[-1] != page:
                entry.pages.append(page)
            if entry.page == page:
                entry.quads.append(each.quad)
                entry.orders.append(order)
            return
        before = self._once.get(signature)
        if (before is None or before == page) and not (self._remembers_single or _stands_out(each)):
            self._once[signature] = page
            return
        if len(self.entries) < _MAX_ENTRIES:
            pages = [page] if before is None or before == page else [before, page]
            self.entries[signature] = Entry(each, frame, page, [order], pages, len(pages), [each.quad])


def _stands_out(each: Placed) -> bool:
    """Whether something is worth a look although it may be there only once."""
    drawing = each.drawing
    if each.section is not None and each.section.named:
        return True
    seen = Traits(angle=angle_of(each.quad), alpha=each.alpha)
    if drawing.kind is Kind.TEXT:
        return seen.slanted or seen.transparent or watermark_words(drawing.text) in _TELLING_WORDS
    if drawing.form is not None and drawing.form.drawings:
        return all(inner.alpha * each.alpha <= MAX_TRANSPARENT_ALPHA for inner in drawing.form.drawings)
    return drawing.soft or (seen.transparent and drawing.kind is Kind.PICTURE)

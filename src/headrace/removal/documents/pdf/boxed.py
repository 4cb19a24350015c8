"""What a user's box on a page holds: where nothing in it looks like a mark, all that is drawn in it is one."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pikepdf

from headrace.removal.documents.boxes import REASON, is_for, is_inside
from headrace.removal.documents.pdf.bombs import TooLarge
from headrace.removal.documents.pdf.drawings import Placed, placed
from headrace.removal.documents.pdf.pages import PageFrame, frame_of
from headrace.removal.documents.pdf.reading import Reader
from headrace.removal.documents.pdf.scanning import MAX_TEXT_LETTERS, Found
from headrace.removal.order import Hint, Rectangle
from headrace.removal.report import Candidate

_MAX_COMPARISONS = 4_000_000  # of drawings with boxes, on one page


Wanted = Sequence[tuple[Hint, Rectangle]]


@dataclass(slots=True)
class _Held:
    """What one box holds, on all pages that were read."""

    first: tuple[PageFrame, list[Placed]] | None = None
    by_page: dict[int, frozenset[int]] = field(default_factory=dict)

    def add(self, number: int, frame: PageFrame, own: list[Placed]) -> None:
        if own:
            self.first = self.first or (frame, own)
            self.by_page[number] = frozenset(each.drawing.signature for each in own)

    @property
    def signatures(self) -> frozenset[int]:
        return frozenset().union(*self.by_page.values())

    def found(self) -> Found | None:
        if self.first is None:
            return None
        frame, own = self.first
        text = " ".join(each.drawing.text for each in own if each.drawing.text)
        candidate = Candidate(
            id=0,
            kind=str(own[0].drawing.kind),
            pages=tuple(self.by_page),
            copies=len(self.by_page),
            box=frame.box([each.quad for each in own]),
            score=1.0,
            method="box",
            certain=False,
            reasons=(REASON,),
            text=text[:MAX_TEXT_LETTERS] or None,
        )
        return Found(candidate, self.signatures, by_page=self.by_page)


def in_boxes(
    pdf: pikepdf.Pdf, reader: Reader, wanted: Wanted, takes_page: Callable[[int], bool], heed: Callable[[], object]
) -> list[Found]:
    """All that lies in each box, on the pages of its hint, else on the first page with something in it and wherever the
    same is in the box. What is drawn outside of the box, too, is not taken: it would go there as well. ``heed`` is
    called after each page, and may raise to end the work. Raises ``TooLarge``."""
    held = [_Held() for _ in wanted]
    for number, page in enumerate(pdf.pages, 1):
        if not takes_page(number):
            continue
        frame = frame_of(page)
        drawings = [(each, frame.box([each.quad])) for each in placed(reader.page(page)) if each.drawing.visible]
        if len(drawings) * len(wanted) > _MAX_COMPARISONS:
            raise TooLarge(f"page {number} has {len(drawings):,} drawings, too many for {len(wanted)} boxes")
        everywhere = Counter(each.drawing.signature for each, _ in drawings)
        for (hint, box), each in zip(wanted, held, strict=True):
            if not is_for(hint, box, number, frame.area):
                continue
            inside = [drawing for drawing, own in drawings if is_inside(own, box)]
            here = Counter(one.drawing.signature for one in inside)
            own = [one for one in inside if here[one.drawing.signature] == everywhere[one.drawing.signature]]
            if hint.pages is None and each.first is not None:
                own = [one for one in own if one.drawing.signature in each.signatures]
            each.add(number, frame, own)
        heed()
    return [found for each in held if (found := each.found()) is not None]

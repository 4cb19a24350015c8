"""What a user's box on a page holds: where nothing in it looks like a mark, all that is drawn in it is one."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pikepdf

from headrace.removal.documents.boxes import REASON, is_for, is_inside
from headrace.removal.documents.pdf.drawings import Placed, placed
from headrace.removal.documents.pdf.pages import PageFrame, frame_of
from headrace.removal.documents.pdf.reading import Reader
from headrace.removal.documents.pdf.scanning import Found
from headrace.removal.order import Hint, Rectangle
from headrace.removal.report import Candidate

_MAX_TEXT_LETTERS = 120


Wanted = Sequence[tuple[Hint, Rectangle]]


@dataclass(slots=True)
class _Held:
    """What one box holds, on all pages that were read."""

    first: tuple[PageFrame, list[Placed]] | None = None
    signatures: set[int] = field(default_factory=set)
    pages: list[int] = field(default_factory=list)

    def add(self, number: int, frame: PageFrame, own: list[Placed]) -> None:
        if own:
            self.first = self.first or (frame, own)
            self.signatures |= {each.drawing.signature for each in own}
            self.pages.append(number)

    def found(self) -> Found | None:
        if self.first is None:
            return None
        frame, own = self.first
        text = " ".join(each.drawing.text for each in own if each.drawing.text)
        candidate = Candidate(
            id=0,
            kind=str(own[0].drawing.kind),
            pages=tuple(self.pages),
            copies=len(self.pages),
            box=frame.box([each.quad for each in own]),
            score=1.0,
            method="box",
            certain=False,
            reasons=(REASON,),
            text=text[:_MAX_TEXT_LETTERS] or None,
        )
        return Found(candidate, frozenset(self.signatures))


def in_boxes(pdf: pikepdf.Pdf, reader: Reader, wanted: Wanted, takes_page: Callable[[int], bool]) -> list[Found]:
    """All that lies in each box, on the pages of its hint, else on the first page with something in it and wherever the
    same is in the box. What is drawn outside of the box, too, is not taken: it would go there as well."""
    held = [_Held() for _ in wanted]
    for number, page in enumerate(pdf.pages, 1):
        if not takes_page(number):
            continue
        frame = frame_of(page)
        drawings = [each for each in placed(reader.page(page)) if each.drawing.visible]
        for (hint, box), each in zip(wanted, held, strict=True):
            if not is_for(hint, box, number, frame.area):
                continue
            own = _own(frame, drawings, box)
            if hint.pages is None and each.first is not None:
                own = [one for one in own if one.drawing.signature in each.signatures]
            each.add(number, frame, own)
    return [found for each in held if (found := each.found()) is not None]


def _own(frame: PageFrame, drawings: list[Placed], box: Rectangle) -> list[Placed]:
    """What lies in the box and nowhere else on the page."""
    inside = [each for each in drawings if is_inside(frame.box([each.quad]), box)]
    everywhere = Counter(each.drawing.signature for each in drawings)
    here = Counter(each.drawing.signature for each in inside)
    return [each for each in inside if here[each.drawing.signature] == everywhere[each.drawing.signature]]

"""What a user's box on a page holds: where nothing in it looks like a mark, all that is drawn in it is one."""

from collections import Counter
from collections.abc import Callable, Iterator

import pikepdf

from headrace.removal.documents.pdf.drawings import Placed, placed
from headrace.removal.documents.pdf.pages import PageFrame, frame_of
from headrace.removal.documents.pdf.reading import Reader
from headrace.removal.documents.pdf.scanning import Found
from headrace.removal.order import Hint, Rectangle
from headrace.removal.report import Box as ShownBox
from headrace.removal.report import Candidate

_MIN_INSIDE_RATIO = 0.8  # of what is drawn
_MAX_PAGE_RATIO = 0.5  # of the page: a box that takes more is for finding, not for taking everything
_MAX_TEXT_LETTERS = 120


def in_box(
    pdf: pikepdf.Pdf, reader: Reader, hint: Hint, box: Rectangle, takes_page: Callable[[int], bool]
) -> Found | None:
    """All that lies in the box, on the pages of the hint, else on the first page with something in it and wherever the
    same is in the box. What is drawn outside of the box, too, is not taken: it would go there as well."""
    first: tuple[int, PageFrame, list[Placed]] | None = None
    signatures: set[int] = set()
    pages: list[int] = []
    for number, frame, drawings in _pages(pdf, reader, hint, takes_page):
        if box[2] * box[3] > _MAX_PAGE_RATIO * frame.area:
            continue
        own = _own(frame, drawings, box)
        if hint.pages is None and first is not None:
            own = [each for each in own if each.drawing.signature in signatures]
        if own:
            first = first or (number, frame, own)
            signatures |= {each.drawing.signature for each in own}
            pages.append(number)
    if first is None:
        return None
    text = " ".join(each.drawing.text for each in first[2] if each.drawing.text)
    candidate = Candidate(
        id=0,
        kind=str(first[2][0].drawing.kind),
        pages=tuple(pages),
        copies=len(pages),
        box=first[1].box([each.quad for each in first[2]]),
        score=1.0,
        method="box",
        certain=False,
        reasons=("the user drew a box around it",),
        text=text[:_MAX_TEXT_LETTERS] or None,
    )
    return Found(candidate, frozenset(signatures))


def _pages(
    pdf: pikepdf.Pdf, reader: Reader, hint: Hint, takes_page: Callable[[int], bool]
) -> Iterator[tuple[int, PageFrame, list[Placed]]]:
    for number, page in enumerate(pdf.pages, 1):
        if takes_page(number) and (hint.pages is None or hint.pages[0] <= number <= hint.pages[1]):
            drawings = [each for each in placed(reader.page(page)) if each.drawing.visible]
            yield number, frame_of(page), drawings


def _own(frame: PageFrame, drawings: list[Placed], box: Rectangle) -> list[Placed]:
    """What lies in the box and nowhere else on the page."""
    inside = [each for each in drawings if _share(frame.box([each.quad]), box) >= _MIN_INSIDE_RATIO]
    everywhere = Counter(each.drawing.signature for each in drawings)
    here = Counter(each.drawing.signature for each in inside)
    return [each for each in inside if here[each.drawing.signature] == everywhere[each.drawing.signature]]


def _share(own: ShownBox, box: Rectangle) -> float:
    """How much of what is drawn the box holds; a line counts as one point wide."""
    left, top, width, height = box
    wide, high = max(own.width, 1.0), max(own.height, 1.0)
    across = min(left + width, own.left + wide) - max(left, own.left)
    along = min(top + height, own.top + high) - max(top, own.top)
    return max(across, 0.0) * max(along, 0.0) / (wide * high)

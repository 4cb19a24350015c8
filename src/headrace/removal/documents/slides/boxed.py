"""What a user's box on a slide holds: where nothing in it looks like a mark, all shapes in it are one."""

from collections.abc import Callable, Sequence

from headrace.removal.documents.boxes import REASON, is_for, is_inside
from headrace.removal.documents.slides.deck import Deck
from headrace.removal.documents.slides.package import Package
from headrace.removal.documents.slides.scanning import Found
from headrace.removal.documents.slides.shapes import Shape, shapes_on, shown_box
from headrace.removal.order import Hint, Rectangle
from headrace.removal.report import Candidate


def in_boxes(
    package: Package, deck: Deck, wanted: Sequence[tuple[Hint, Rectangle]], takes_page: Callable[[int], bool]
) -> list[Found]:
    """The shapes in each box, on the slides of its hint, else on the first slide with one and wherever the same is."""
    shapes = [shape for sheet in deck.sheets for shape in shapes_on(package, sheet) if shape.kind != "background"]
    found = []
    for hint, box in wanted:
        held = _held(shapes, hint, box, takes_page, deck.width * deck.height)
        if held:
            found.append(_found(held))
    return found


def _held(
    shapes: list[Shape], hint: Hint, box: Rectangle, takes_page: Callable[[int], bool], area: float
) -> list[Shape]:
    inside: list[tuple[int, Shape]] = []
    for shape in shapes:
        if not is_inside(shown_box(shape), box):
            continue
        pages = [page for page in shape.sheet.pages if takes_page(page) and is_for(hint, box, page, area)]
        # What a layout or a master shows goes from all of its slides: not where the hint names some of them.
        if pages and (hint.pages is None or len(pages) == len(shape.sheet.pages)):
            inside.append((min(pages), shape))
    if hint.pages is None and inside:
        first = min(page for page, _ in inside)
        signatures = {shape.signature for page, shape in inside if page == first}
        inside = [(page, shape) for page, shape in inside if shape.signature in signatures]
    signatures = {shape.signature for _, shape in inside}
    return [shape for _, shape in inside if shape.parent not in signatures]  # a group goes as a whole


def _found(held: list[Shape]) -> Found:
    levels = sorted({shape.sheet.level for shape in held})
    candidate = Candidate(
        id=0,
        kind=held[0].kind if levels == ["slide"] else f"{held[0].kind} on the {' and '.join(levels)}",
        pages=tuple(sorted({page for shape in held for page in shape.sheet.pages})),
        copies=len(held),
        box=shown_box(held[0]),
        score=1.0,
        method="box",
        certain=False,
        reasons=(REASON,),
    )
    return Found(candidate, tuple(held))

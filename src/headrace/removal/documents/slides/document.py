"""One presentation: opened, read, cleaned, written, checked."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from headrace.removal.documents.slides.boxed import in_boxes
from headrace.removal.documents.slides.checking import check
from headrace.removal.documents.slides.deck import read_deck
from headrace.removal.documents.slides.editing import take_off
from headrace.removal.documents.slides.package import Package
from headrace.removal.documents.slides.scanning import Found, pictured, scan
from headrace.removal.documents.slides.shapes import Shape
from headrace.removal.errors import TargetUnusable
from headrace.removal.order import FailureCode, Hint, Order, Progress, Rectangle
from headrace.removal.report import Candidate, Check, NotCleaned

# How far the work is, in percent, when a part of it ends.
_READ_PERCENT, _WRITTEN_PERCENT = 60, 80


class SlidesDocument:
    """A .pptx that was read, and can be cleaned once."""

    format = "pptx"

    def __init__(self, source: str, progress: Progress) -> None:
        """Raises ``DocumentUnreadable``."""
        self._source = source
        self._package = Package(source)
        self._deck = deck = read_deck(self._package, source)
        self._found = scan(self._package, deck, lambda share: progress(round(_READ_PERCENT * share)))
        self.pages = deck.slides
        self.warnings: list[str] = []
        if (count := pictured(self._package, deck)) > 0:
            self.warnings.append(
                f"{_number_of(count)} covered by a picture: a mark that is part of the picture is not looked for. Save "
                "the picture, clean it with `headrace remove`, and put it in the old one's place."
            )

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(each.candidate for each in self._found)

    def add_boxed(
        self, wanted: Sequence[tuple[Hint, Rectangle]], takes_page: Callable[[int], bool], heed: Callable[[], object]
    ) -> None:
        """List the shapes in the user's boxes as the last candidates."""
        found = in_boxes(self._package, self._deck, wanted, takes_page)
        heed()
        for number, each in enumerate(found, len(self._found) + 1):
            self._found = (*self._found, replace(each, candidate=replace(each.candidate, id=number)))

    @property
    def is_signed(self) -> bool:
        return any(name.startswith("_xmlsignatures/") for name in self._package.names())

    def clean(self, chosen: Sequence[Candidate], order: Order, result: str, progress: Progress) -> Check:
        """Write the result without what was chosen, and hold it against the original. Raises ``NotCleaned``."""
        shapes = _shapes(self._found, chosen, order, self.warnings)
        if not shapes:
            reason = "No mark is on these slides only. If it is on a layout or a master, order all slides."
            raise NotCleaned(FailureCode.NO_MARK, reason)
        _write(self._package, shapes, result)
        progress(_WRITTEN_PERCENT)
        return check(self._source, result, shapes)


def _number_of(count: int) -> str:
    return "1 slide is" if count == 1 else f"{count} slides are"


def _shapes(found: tuple[Found, ...], chosen: Sequence[Candidate], order: Order, warnings: list[str]) -> list[Shape]:
    """The shapes to take off. One that slides share can only go from all of them."""
    numbers = {each.id for each in chosen}
    shapes = [shape for each in found if each.candidate.id in numbers for shape in each.shapes]
    if not order.page_ranges:
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

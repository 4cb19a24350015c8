"""One PDF: opened, read, cleaned, written, checked."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pikepdf
from pikepdf.exceptions import PikepdfError

from headrace.removal.documents.pdf.annotations import notes_of
from headrace.removal.documents.pdf.bombs import TooLarge
from headrace.removal.documents.pdf.boxed import in_boxes
from headrace.removal.documents.pdf.checking import check
from headrace.removal.documents.pdf.drawings import placed
from headrace.removal.documents.pdf.marked_content import drop_watermark_layers
from headrace.removal.documents.pdf.opening import is_signed, opened
from headrace.removal.documents.pdf.overlay import draw_overlay, draw_sides
from headrace.removal.documents.pdf.page_editing import Editor, Taken
from headrace.removal.documents.pdf.pages import PageFrame, frame_of
from headrace.removal.documents.pdf.reading import Reader
from headrace.removal.documents.pdf.scan_editing import clean, learnt
from headrace.removal.documents.pdf.scanning import Scan, scan
from headrace.removal.documents.pdf.scans import MIN_VIEWS, ScanMark
from headrace.removal.errors import DocumentUnreadable, TargetUnusable
from headrace.removal.order import FailureCode, Hint, Order, Progress, Rectangle
from headrace.removal.report import Candidate, Check, NotCleaned

# How far the work is, in percent, when a part of it ends.
_READ_PERCENT, _EDITED_PERCENT, _WRITTEN_PERCENT = 50, 75, 85
_TOO_FAINT = (
    "The mark in the scanned pages could not be separated from the grain of the paper, or their "
    "pictures cannot be read: the result would be worse than the original."
)


@contextmanager
def _readable(source: str) -> Iterator[None]:
    try:
        yield
    except TooLarge as exc:
        raise DocumentUnreadable(f"{source} cannot be read: {exc}.") from exc
    except (PikepdfError, RecursionError) as exc:
        raise DocumentUnreadable(f"{source} cannot be read: {str(exc)[:200]}") from exc


class PdfDocument:
    """A PDF that was read, and can be cleaned once."""

    format = "pdf"

    def __init__(self, source: str, password: str | None, progress: Progress) -> None:
        """Raises ``DocumentUnreadable`` and ``DocumentEncrypted``."""
        self._source, self._password = source, password
        self._open = ExitStack()  # until nothing refers to it
        self._pdf = self._open.enter_context(opened(source, password))
        self._reader = Reader()
        with _readable(source):
            self._scan = scan(self._pdf, self._reader, lambda share: progress(round(_READ_PERCENT * share)))
            self.warnings = _warnings(self._pdf, self._scan)
        self.pages = self._scan.pages

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(found.candidate for found in self._scan.found)

    def add_boxed(
        self, wanted: Sequence[tuple[Hint, Rectangle]], takes_page: Callable[[int], bool], heed: Callable[[], object]
    ) -> None:
        """List what is drawn in the user's boxes as the last candidates."""
        with _readable(self._source):
            found = in_boxes(self._pdf, self._reader, wanted, takes_page, heed)
        for number, each in enumerate(found, len(self._scan.found) + 1):
            numbered = replace(each, candidate=replace(each.candidate, id=number))
            self._scan = replace(self._scan, found=(*self._scan.found, numbered))

    @property
    def is_signed(self) -> bool:
        with _readable(self._source):
            return is_signed(self._pdf)

    def draw_overlay(self, target: str) -> None:
        frame = frame_of(self._pdf.pages[self.candidates[0].pages[0] - 1])
        draw_overlay(self._source, target, password=self._password, candidates=self.candidates, frame=frame)

    def draw_sides(self, result: str, target: str, *, page: int) -> None:
        draw_sides(self._source, result, target, password=self._password, number=page)

    def clean(self, chosen: Sequence[Candidate], order: Order, result: str, progress: Progress) -> Check:
        """Write the result without what was chosen, and hold it against the original. Raises ``NotCleaned``."""
        with _readable(self._source):
            taken, frames, separable = self._take_off(chosen, order, progress)
            if not separable:
                raise NotCleaned(FailureCode.MARK_REMAINS, _TOO_FAINT)
            if not any(each.drawings for each in taken.values()):
                raise NotCleaned(FailureCode.NO_MARK, "No mark is on the pages that were named.")
            _write(self._pdf, result)
            progress(_WRITTEN_PERCENT)
            checked = check(self._source, result, password=self._password, taken=taken, frames=frames)
            return self._read_again(checked, result, chosen, taken)

    def _take_off(
        self, chosen: Sequence[Candidate], order: Order, progress: Progress
    ) -> tuple[dict[int, Taken], dict[int, PageFrame], bool]:
        """What went from which page, and whether every mark in scans could be separated from the paper."""
        editor = Editor(self._pdf, self._reader)
        on_pages = sorted({page for each in chosen for page in each.pages if order.takes_page(page)})
        taken: dict[int, Taken] = {}
        frames: dict[int, PageFrame] = {}
        for count, number in enumerate(on_pages, 1):
            page = self._pdf.pages[number - 1]
            lost = editor.page(page, self._signatures(chosen, number))
            if lost.drawings:
                taken[number], frames[number] = lost, frame_of(page)
            progress(_READ_PERCENT + round((_EDITED_PERCENT - _READ_PERCENT) * count / len(on_pages)))
        found = self._scan.found
        scanned = [each.scanned for each in found if each.candidate in chosen and each.scanned is not None]
        separable = all(_clean_scans(self._pdf, mark, order, taken, frames, progress) for mark in scanned)
        layers = {each.candidate.id for each in found if each.candidate.kind == "layer"}
        if layers and layers <= {each.id for each in chosen} and not order.page_ranges:
            drop_watermark_layers(self._pdf)
        return taken, frames, separable

    def _signatures(self, chosen: Sequence[Candidate], page: int) -> frozenset[int]:
        numbers = {each.id for each in chosen}
        return frozenset().union(*(found.on(page) for found in self._scan.found if found.candidate.id in numbers))

    def _read_again(self, checked: Check, result: str, chosen: Sequence[Candidate], pages: Iterable[int]) -> Check:
        """The removed drawings may not occur in the result, whatever they look like."""
        if not checked.passed:
            return checked
        with opened(result, self._password) as pdf:
            reader = Reader()
            for number in pages:
                page = pdf.pages[number - 1]
                drawn = {each.drawing.signature for each in placed(reader.page(page))}
                drawn |= {note.drawing.signature for note in notes_of(reader, page)}
                if drawn & self._signatures(chosen, number):
                    reason = f"The mark is still on page {number}."
                    return replace(checked, passed=False, reason=reason, residue_after=1.0)
        return checked


def _clean_scans(
    pdf: pikepdf.Pdf,
    mark: ScanMark,
    order: Order,
    taken: dict[int, Taken],
    frames: dict[int, PageFrame],
    progress: Progress,
) -> bool:
    matte = learnt(pdf, mark, lambda: progress(_EDITED_PERCENT))
    if matte is None:
        return False
    # A picture that a page shows which is to stay as it is stays, too; one that several show is cleaned once.
    kept = {page.picture for page in mark.pages if not order.takes_page(page.number)}
    done: dict[tuple[int, int], bool] = {}
    for page in mark.pages:
        progress(_EDITED_PERCENT)
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


def _warnings(pdf: pikepdf.Pdf, seen: Scan) -> list[str]:
    warnings = []
    if seen.scanned:
        pages = "1 page is a picture" if seen.scanned == 1 else f"{seen.scanned} pages are pictures"
        warnings.append(f"{pages}: a mark in the picture is seen only where {MIN_VIEWS} of one size have it in common")
    if seen.unreadable:
        warnings.append(f"{seen.unreadable} parts of pages cannot be read and are left as they are")
    if pdf.get_warnings():
        warnings.append("the file is damaged, and was read as well as it can be")
    return warnings

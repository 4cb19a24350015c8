"""Finds what may be a mark in a PDF: reads every page, groups what is drawn together, judges it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pikepdf

from headrace.removal.documents.pdf.annotations import notes_of
from headrace.removal.documents.pdf.drawings import Kind, Placed
from headrace.removal.documents.pdf.geometry import angle_of
from headrace.removal.documents.pdf.pages import frame_of
from headrace.removal.documents.pdf.reading import Reader
from headrace.removal.documents.pdf.scans import ScanMark, marks_of
from headrace.removal.documents.pdf.tally import Entry, Tally
from headrace.removal.documents.pdf.traits import traits_of
from headrace.removal.documents.scoring import (
    Judgement,
    Traits,
    is_furniture,
    judge,
)
from headrace.removal.order import MAX_CANDIDATES
from headrace.removal.report import Candidate
from headrace.removal.thresholds import MAX_FURNITURE_SCORE, MIN_AUTO_SCORE, MIN_LISTED_DOCUMENT_SCORE

MAX_TEXT_LETTERS = 120  # characters of a mark's text that a report shows


@dataclass(frozen=True, slots=True)
class Found:
    candidate: Candidate
    signatures: frozenset[int]
    scanned: ScanMark | None = None  # it is part of pictures, and no drawing
    by_page: Mapping[int, frozenset[int]] | None = None  # of what a box holds: where else it stands, it stays

    def on(self, page: int) -> frozenset[int]:
        """What is to go from this page."""
        return self.signatures if self.by_page is None else self.by_page.get(page, frozenset())


@dataclass(frozen=True, slots=True)
class Scan:
    found: tuple[Found, ...]
    pages: int
    scanned: int  # pages that are one picture
    unreadable: int  # streams


@dataclass(frozen=True, slots=True)
class _Group:
    """Entries that are drawn one after the other and look alike."""

    entries: list[Entry]
    traits: Traits
    verdict: Judgement
    annotation: str | None = None

    @property
    def signatures(self) -> frozenset[int]:
        return frozenset(entry.example.drawing.signature for entry in self.entries)


def scan(pdf: pikepdf.Pdf, reader: Reader, progress: Callable[[float], object]) -> Scan:
    """Everything in the document that may be a mark, the surest first."""
    drawn, notes = Tally(), dict[str, Tally]()
    total = max(len(pdf.pages), 1)
    for number, page in enumerate(pdf.pages, 1):
        frame = frame_of(page)
        drawn.add(number, frame, reader.page(page))
        for note in notes_of(reader, page):
            notes.setdefault(note.kind, Tally(remembers_single=True)).add(number, frame, (note.drawing,))
        progress(number / total)
    groups = _groups(pdf, drawn, total)
    for kind, tally in notes.items():
        groups += _groups(pdf, tally, total, annotation=kind)
    marks = tuple(marks_of(pdf, drawn.scanned, total, lambda: progress(1.0)))
    return Scan(_numbered(_best(groups), marks), total, len(drawn.scanned), reader.unreadable)


def _groups(pdf: pikepdf.Pdf, tally: Tally, total: int, annotation: str | None = None) -> list[_Group]:
    in_order = sorted(tally.entries.values(), key=lambda each: (each.page, each.example.stream, each.orders[0]))
    rows: list[list[Entry]] = []
    places: set[int] = set()  # of the last row's drawings
    for entry in in_order:
        if annotation is not None and entry.example.parent is not None:
            continue  # inside an annotation: it goes as a whole or not at all
        # A letter that comes again in a word is the same drawing: its other places fill the gaps.
        if rows and entry.orders[0] - 1 in places and _belong_together(rows[-1][-1], entry):
            rows[-1].append(entry)
        else:
            rows.append([entry])
            places.clear()
        places.update(entry.orders)
    return [_judged(pdf, row, total, annotation) for row in _same_words(rows)]


def _belong_together(first: Entry, then: Entry) -> bool:
    if first.example.drawing.kind in (Kind.PICTURE, Kind.FORM):
        return False  # whole by itself: the logo beside the mark is another
    neighbours = (first.page, first.example.stream) == (then.page, then.example.stream)
    return neighbours and _look(first) == _look(then) and first.pages == then.pages


def _look(entry: Entry) -> tuple[object, ...]:
    each = entry.example
    # The outlines of letters have all directions.
    angle = None if each.drawing.kind is Kind.PATH else round(angle_of(each.quad) / 5)
    return (each.drawing.kind, round(each.alpha, 2), angle, each.section)


def _same_words(rows: list[list[Entry]]) -> list[list[Entry]]:
    """Slanted or transparent words that return in another size, as on pages of another format, are one mark."""
    known: dict[tuple[str, Kind], list[Entry]] = {}
    result = []
    for row in rows:
        text = " ".join(entry.example.drawing.text for entry in row).strip()
        first = row[0].example
        seen = Traits(angle=angle_of(first.quad), alpha=first.alpha)
        key = (text, first.drawing.kind)
        if text and (seen.slanted or seen.transparent) and key in known:
            known[key] += row
            continue
        known[key] = row
        result.append(row)
    return result


def _judged(pdf: pikepdf.Pdf, row: list[Entry], total: int, annotation: str | None) -> _Group:
    first = row[0]
    here = [entry for entry in row if entry.page == first.page]
    quads = [quad for entry in here for quad in (entry.quads if len(entry.quads) < 4 else entry.quads[:1])]
    traits = traits_of(pdf, [entry.example for entry in here], quads, first.frame)
    pages = {page for entry in row for page in entry.pages}
    copies = max(entry.copies / len(entry.pages) for entry in row)
    traits = replace(traits, pages=len(pages), of_pages=total, copies_a_page=max(copies, traits.copies_a_page))
    return _Group(row, traits, judge(traits), annotation)


def _best(groups: list[_Group]) -> list[_Group]:
    """Those worth a look, without what lies inside another one that goes as a whole."""
    listed = [each for group in groups if (each := _listed(group)) is not None]
    listed.sort(key=lambda each: (-each.verdict.score, each.entries[0].page, each.entries[0].orders[0]))
    scores = {signature: each.verdict.score for each in listed for signature in each.signatures}
    inner = {
        entry.example.parent: group.verdict.score
        for group in reversed(listed)
        for entry in group.entries
        if entry.example.parent is not None
    }
    kept = []
    for group in listed:
        parents = [scores.get(entry.example.parent or 0, 0.0) for entry in group.entries]
        within = min(parents) >= group.verdict.score
        # A form with more in it than the mark stays, and the mark in it goes.
        around = any(inner.get(signature, 0.0) > group.verdict.score for signature in group.signatures)
        if not within and not around:
            kept.append(group)
    return kept[:MAX_CANDIDATES]


def _listed(group: _Group) -> _Group | None:
    """The group, if a person should see it: as a mark, or as something on most pages that the person may call one."""
    if group.verdict.score >= MIN_LISTED_DOCUMENT_SCORE:
        return group
    if not is_furniture(group.traits, annotation=group.annotation is not None):
        return None
    return replace(group, verdict=replace(group.verdict, score=MAX_FURNITURE_SCORE))


def _numbered(groups: list[_Group], marks: tuple[ScanMark, ...]) -> tuple[Found, ...]:
    found = [Found(_candidate(group), group.signatures) for group in groups]
    found += [Found(_of_scan(mark), frozenset(), mark) for mark in marks]
    found.sort(key=lambda each: -each.candidate.score)
    return tuple(
        replace(each, candidate=replace(each.candidate, id=number))
        for number, each in enumerate(found[:MAX_CANDIDATES], 1)
    )


def _of_scan(mark: ScanMark) -> Candidate:
    first = mark.pages[0]
    return Candidate(
        id=0,
        kind="scan",
        pages=tuple(page.number for page in mark.pages),
        copies=mark.copies * len(mark.pages),
        box=first.frame.box([mark.quad(first)]),
        score=mark.verdict.score,
        method=mark.verdict.method,
        certain=mark.verdict.score >= MIN_AUTO_SCORE,
        reasons=mark.verdict.reasons,
    )


def _candidate(group: _Group) -> Candidate:
    first = group.entries[0]
    quads = [quad for entry in group.entries if entry.page == first.page for quad in entry.quads]
    return Candidate(
        id=0,
        kind=group.annotation or _kind(first.example),
        pages=tuple(sorted({page for entry in group.entries for page in entry.pages})),
        copies=max(entry.copies for entry in group.entries),
        box=first.frame.box(quads),
        score=group.verdict.score,
        method=group.verdict.method,
        certain=group.verdict.score >= MIN_AUTO_SCORE,
        reasons=group.verdict.reasons,
        text=group.traits.text[:MAX_TEXT_LETTERS] or None,
    )


def _kind(example: Placed) -> str:
    if example.section is not None and example.section.named:
        return "layer" if example.section.layer is not None else "artifact"
    return "pattern" if example.drawing.tile is not None else str(example.drawing.kind)

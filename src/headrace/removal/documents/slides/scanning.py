"""Finds what may be a mark in a presentation: the same shape on many slides, or one on a master that looks like one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.removal.documents.scoring import (
    Judgement,
    Traits,
    is_furniture,
    judge,
)
from headrace.removal.documents.slides.deck import Deck
from headrace.removal.documents.slides.package import Package
from headrace.removal.documents.slides.shapes import Shape, shapes_on, shown_box, traits_of
from headrace.removal.order import MAX_CANDIDATES
from headrace.removal.report import Box, Candidate
from headrace.removal.thresholds import MAX_FURNITURE_SCORE, MIN_AUTO_SCORE, MIN_LISTED_DOCUMENT_SCORE

_MAX_TEXT_LETTERS = 120
# A picture or shape on a master without a word is as likely part of the design.
_MAX_DESIGN_SCORE = 0.65
_MIN_PICTURED_RATIO = 0.5  # of a slide


@dataclass(frozen=True, slots=True)
class Found:
    candidate: Candidate
    shapes: tuple[Shape, ...]

    @property
    def signature(self) -> bytes:
        return self.shapes[0].signature


@dataclass(slots=True)
class _Group:
    shapes: list[Shape]
    pages: set[int]
    verdict: Judgement
    traits: Traits


def scan(package: Package, deck: Deck, progress: Callable[[float], object]) -> tuple[Found, ...]:
    """Everything in the presentation that may be a mark, the surest first."""
    by_signature: dict[bytes, list[Shape]] = {}
    for count, sheet in enumerate(deck.sheets, 1):
        for shape in shapes_on(package, sheet):
            by_signature.setdefault(shape.signature, []).append(shape)
        progress(count / len(deck.sheets))
    groups = [_judged(package, deck, shapes) for shapes in by_signature.values()]
    listed = [group for group in groups if group.verdict.score >= MIN_LISTED_DOCUMENT_SCORE]
    listed += [
        replace(group, verdict=replace(group.verdict, score=MAX_FURNITURE_SCORE))
        for group in groups
        if group.verdict.score < MIN_LISTED_DOCUMENT_SCORE and is_furniture(group.traits)
    ]
    listed.sort(key=lambda each: (-each.verdict.score, min(each.pages, default=0), each.shapes[0].box.top))
    return tuple(
        Found(_candidate(number, group, deck), tuple(group.shapes))
        for number, group in enumerate(_outermost(listed)[:MAX_CANDIDATES], 1)
    )


def pictured(package: Package, deck: Deck) -> int:
    """How many slides show one picture over most of them, of which nothing tells what is part of it."""
    pages: set[int] = set()
    for sheet in deck.sheets:
        for shape in shapes_on(package, sheet):
            covered = shape.box.width * shape.box.height / (deck.width * deck.height)
            if shape.kind == "background" or (shape.kind == "picture" and covered > _MIN_PICTURED_RATIO):
                pages.update(sheet.pages)
    return len(pages)


def _judged(package: Package, deck: Deck, shapes: list[Shape]) -> _Group:
    first = shapes[0]
    pages = {page for shape in shapes for page in shape.sheet.pages}
    on_slides = len({shape.sheet.part for shape in shapes})
    traits = traits_of(package, first, deck)
    copies = len(shapes) / max(on_slides, 1)
    traits = replace(
        traits,
        # Names are incomplete: a shape called a watermark on one slide is one on the others.
        named=traits.named or any(traits_of(package, shape, deck).named for shape in shapes[1:8]),
        pages=max(len(pages), 1),
        of_pages=max(deck.slides, 1),
        copies_a_page=copies,
    )
    return _Group(shapes, pages, _with_design(judge(traits), traits, first), traits)


def _with_design(verdict: Judgement, traits: Traits, shape: Shape) -> Judgement:
    """What masters and layouts show is mostly design, where no word says otherwise."""
    plainly_a_mark = traits.named or traits.slanted or (traits.transparent and traits.centred and not traits.backdrop)
    if shape.sheet.level == "slide" or traits.text or plainly_a_mark or verdict.score <= _MAX_DESIGN_SCORE:
        return verdict
    return replace(verdict, score=_MAX_DESIGN_SCORE, reasons=(*verdict.reasons, "it may be part of the design"))


def _outermost(groups: list[_Group]) -> list[_Group]:
    """Without shapes inside a group that goes as a whole, and without groups that hold more than a mark."""
    scores = {group.shapes[0].signature: group.verdict.score for group in groups}
    inner = {shape.parent: group.verdict.score for group in reversed(groups) for shape in group.shapes if shape.parent}
    kept = []
    for group in groups:
        score = group.verdict.score
        within = min(scores.get(shape.parent or b"", 0.0) for shape in group.shapes) >= score
        around = inner.get(group.shapes[0].signature, 0.0) > max(score, MIN_AUTO_SCORE)
        if not within and not around:
            kept.append(group)
    return kept


def _candidate(number: int, group: _Group, deck: Deck) -> Candidate:
    first = group.shapes[0]
    whole = Box(0.0, 0.0, round(deck.width, 1), round(deck.height, 1))
    box = whole if first.kind == "background" else shown_box(first)
    levels = sorted({shape.sheet.level for shape in group.shapes})
    return Candidate(
        id=number,
        kind=first.kind if levels == ["slide"] else f"{first.kind} on the {' and '.join(levels)}",
        pages=tuple(sorted(group.pages)),
        copies=len(group.shapes),
        box=box,
        score=group.verdict.score,
        method=group.verdict.method,
        certain=group.verdict.score >= MIN_AUTO_SCORE,
        reasons=group.verdict.reasons,
        text=group.traits.text[:_MAX_TEXT_LETTERS] or None,
    )

"""How sure it is that something in a document is a mark: the same rules for PDF and slides.

Letterheads, page numbers and logos repeat as marks do, charts and designs are transparent as marks are. So no single
trait is enough, except that the file itself calls it a watermark.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from headrace.removal.documents.words import Words, watermark_words

_NAMED_SCORE = 0.97
_WORDS_SCORE = {Words.TRIAL: 0.55, Words.ALL: 0.35, Words.PART: 0.25, Words.NONE: 0.0}
_SLANTED_SCORE = 0.3
_TRANSPARENT_SCORE = 0.25
_PALE_SCORE = 0.15
_LARGE_SCORE = 0.15
_CENTRED_SCORE = 0.1
_TILED_SCORE = 0.2
_ON_MOST_PAGES_SCORE, _ON_MANY_PAGES_SCORE = 0.25, 0.15
_IN_MARGIN_SCORE = -0.3
_SOLID_SCORE = -0.25
_SOLID_SLANTED_SCORE = -0.15
_PLAIN_SHAPE_SCORE = -0.3
_BACKDROP_SCORE = -0.3
# A single copy could be part of the page: without the words of a mark, the user must confirm it.
_MAX_SINGLE_SCORE = 0.6
# Marks are on all pages or on many: the word SAMPLE on one page of fifty may be on a drawn cheque.
_MIN_LONG_DOCUMENT_PAGES = 20
_MIN_LETTERS = 3  # letters of a mark
MAX_TRANSPARENT_ALPHA = 0.85
_MIN_SLANT_DEGREES, _MIN_LARGE_RATIO, _MIN_TILED_COPIES = 8, 0.3, 4
_MIN_CERTAIN_TILED_COPIES = 8  # copies a page, which nothing but a mark has if they are slanted and seen through


class Evidence(StrEnum):
    """What spoke for a candidate first."""

    NAMED = "named"  # the file itself calls it a watermark
    REPETITION = "repetition"  # the same on many pages, or many times on one
    APPEARANCE = "appearance"  # how it looks: slanted, transparent, what it says


@dataclass(frozen=True, slots=True)
class Traits:
    named: bool = False  # the file calls it a watermark
    belongs: bool = False  # the file says that it is a header, a placeholder, a link: part of the document
    text: str = ""
    angle: float = 0.0  # degrees
    alpha: float = 1.0
    pale: bool = False  # of a light colour
    span: float = 0.0  # its diagonal, as a share of the page's
    centred: bool = False
    in_margin: bool = False
    plain_shape: bool = False  # a box, a line, a circle: decoration
    backdrop: bool = False  # covers the page
    pages: int = 1
    of_pages: int = 1
    copies_a_page: float = 1.0

    @property
    def slanted(self) -> bool:
        return abs((self.angle + 45) % 90 - 45) >= _MIN_SLANT_DEGREES

    @property
    def transparent(self) -> bool:
        return self.alpha <= MAX_TRANSPARENT_ALPHA

    @property
    def tiled(self) -> bool:
        return self.copies_a_page >= _MIN_TILED_COPIES and (self.pale or self.transparent)


@dataclass(frozen=True, slots=True)
class Judgement:
    score: float
    method: Evidence
    reasons: tuple[str, ...]


def judge(traits: Traits) -> Judgement:
    """A score from 0 to 1, and what spoke for and against."""
    if traits.named:
        return Judgement(_NAMED_SCORE, Evidence.NAMED, ("the file calls it a watermark",))
    words = watermark_words(traits.text)
    if words is Words.LICENCE:
        words = Words.TRIAL if traits.in_margin and (traits.pages > 1 or traits.of_pages == 1) else Words.PART
    if traits.text and len(traits.text.replace(" ", "")) < _MIN_LETTERS:
        traits = replace(traits, plain_shape=True)  # a sign on a map or in a formula
    weighed = [(weight, reason) for weight, reason in _rules(traits, words) if weight]
    score = sum(weight for weight, _ in weighed)
    limit = _limit(traits, words)
    if score > limit:
        score = limit
        weighed.append((0.0, "that is not enough: " + _why_limited(traits)))
    repeated = traits.pages > 1 or traits.tiled
    return Judgement(
        round(min(max(score, 0.0), 0.95), 2),
        Evidence.REPETITION if repeated else Evidence.APPEARANCE,
        tuple(reason for _, reason in weighed),
    )


def is_furniture(traits: Traits, *, annotation: bool = False) -> bool:
    """Whether it is listed although nothing says that it is a mark: it is slanted or in the margin on most
    pages, or a note."""
    if annotation:
        return True
    says_little = bool(traits.text) and len(traits.text.replace(" ", "")) < _MIN_LETTERS
    if traits.belongs or traits.plain_shape or traits.backdrop or says_little:
        return False
    return (traits.in_margin or traits.slanted) and _repetition(traits) == _ON_MOST_PAGES_SCORE


def _rules(traits: Traits, words: Words) -> list[tuple[float, str]]:
    return [
        (_WORDS_SCORE[words], "it says what watermarks say"),
        (_SLANTED_SCORE * traits.slanted, f"it is slanted by {_slant(traits.angle):.0f} degrees"),
        (_TRANSPARENT_SCORE * traits.transparent, f"it is transparent ({traits.alpha:.0%} covers)"),
        (_PALE_SCORE * (traits.pale and not traits.transparent), "it is pale"),
        (_LARGE_SCORE * (traits.span >= _MIN_LARGE_RATIO), "it is large"),
        (_CENTRED_SCORE * traits.centred, "it is in the middle"),
        (_TILED_SCORE * traits.tiled, f"it occurs {traits.copies_a_page:.0f} times a page"),
        (_repetition(traits), f"it is on {traits.pages} of {traits.of_pages} pages"),
        (
            _IN_MARGIN_SCORE * (traits.in_margin and not traits.slanted and words is not Words.TRIAL),
            "it is in the margin, as headers and page numbers",
        ),
        (_solidity(traits) * (words is not Words.TRIAL), "it is neither transparent nor pale"),
        (_PLAIN_SHAPE_SCORE * traits.plain_shape, "it is a plain shape or sign"),
        (_BACKDROP_SCORE * traits.backdrop, "it covers the page, as a background"),
    ]


def _solidity(traits: Traits) -> float:
    if traits.transparent or traits.pale:
        return 0.0
    return _SOLID_SLANTED_SCORE if traits.slanted else _SOLID_SCORE


def _repetition(traits: Traits) -> float:
    share = traits.pages / max(traits.of_pages, 1)
    if traits.pages >= 2 and share >= 0.8:
        return _ON_MOST_PAGES_SCORE
    return _ON_MANY_PAGES_SCORE if traits.pages >= 3 and share >= 0.3 else 0.0


def _limit(traits: Traits, words: Words) -> float:
    if traits.belongs or traits.plain_shape:
        return _MAX_SINGLE_SCORE
    if traits.tiled and traits.slanted and traits.copies_a_page >= _MIN_CERTAIN_TILED_COPIES:
        return math.inf
    if words is Words.TRIAL and traits.in_margin:
        return _MAX_SINGLE_SCORE
    if traits.pages == 1 and traits.of_pages >= _MIN_LONG_DOCUMENT_PAGES:
        return _MAX_SINGLE_SCORE
    if traits.pages > 1 or (words is not Words.NONE and (traits.slanted or traits.transparent)):
        return math.inf
    return _MAX_SINGLE_SCORE


def _why_limited(traits: Traits) -> str:
    if traits.belongs:
        return "the file says that it is part of the document"
    if traits.plain_shape:
        return "a plain shape or sign may be decoration"
    return "it is on one page alone" if traits.pages == 1 else "it is a line in the margin"


def _slant(angle: float) -> float:
    return min(abs(angle) % 180, 180 - abs(angle) % 180)

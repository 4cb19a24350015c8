"""How sure it is that something in a document is a mark: the same rules for PDF and slides.

Letterheads, page numbers and logos repeat as marks do, charts and designs are transparent as marks are. So no single
trait is enough, except that the file itself calls it a watermark.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from headrace.removal.documents.words import Words, watermark_words

# AUTO acts from the first score on; candidates under the second are not worth a person's look.
MIN_AUTO_SCORE, MIN_LISTED_SCORE = 0.7, 0.45
_NAMED = 0.97
_WORDS = {Words.ALL: 0.35, Words.PART: 0.25, Words.NONE: 0.0}
_SLANTED, _TRANSPARENT, _PALE, _LARGE, _CENTRED, _TILED = 0.3, 0.25, 0.15, 0.15, 0.1, 0.2
_ON_MOST, _ON_MANY = 0.25, 0.15
_IN_MARGIN, _SOLID, _SOLID_SLANTED, _PLAIN_SHAPE, _BACKDROP = -0.3, -0.25, -0.15, -0.3, -0.3
# A single copy could be part of the page: without the words of a mark, the user must confirm it.
_MOST_FOR_ONE = 0.6
_SHORTEST = 3  # letters of a mark
TRANSPARENT_BELOW = 0.85
_SLANT_DEGREES, _LARGE_SPAN, _TILES = 8, 0.3, 4
_TILED_ALL_OVER = 8  # copies a page, which nothing but a mark has if they are slanted and seen through


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
        return abs((self.angle + 45) % 90 - 45) >= _SLANT_DEGREES

    @property
    def transparent(self) -> bool:
        return self.alpha <= TRANSPARENT_BELOW

    @property
    def tiled(self) -> bool:
        return self.copies_a_page >= _TILES and (self.pale or self.transparent)


@dataclass(frozen=True, slots=True)
class Judgement:
    score: float
    method: Evidence
    reasons: tuple[str, ...]


def judge(traits: Traits) -> Judgement:
    """A score from 0 to 1, and what spoke for and against."""
    if traits.named:
        return Judgement(_NAMED, Evidence.NAMED, ("the file calls it a watermark",))
    words = watermark_words(traits.text)
    if traits.text and len(traits.text.replace(" ", "")) < _SHORTEST:
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


def _rules(traits: Traits, words: Words) -> list[tuple[float, str]]:
    return [
        (_WORDS[words], "it says what watermarks say"),
        (_SLANTED * traits.slanted, f"it is slanted by {_slant(traits.angle):.0f} degrees"),
        (_TRANSPARENT * traits.transparent, f"it is transparent ({traits.alpha:.0%} covers)"),
        (_PALE * (traits.pale and not traits.transparent), "it is pale"),
        (_LARGE * (traits.span >= _LARGE_SPAN), "it is large"),
        (_CENTRED * traits.centred, "it is in the middle"),
        (_TILED * traits.tiled, f"it occurs {traits.copies_a_page:.0f} times a page"),
        (_repetition(traits), f"it is on {traits.pages} of {traits.of_pages} pages"),
        (_IN_MARGIN * (traits.in_margin and not traits.slanted), "it is in the margin, as headers and page numbers"),
        (_solidity(traits), "it is neither transparent nor pale"),
        (_PLAIN_SHAPE * traits.plain_shape, "it is a plain shape or sign"),
        (_BACKDROP * traits.backdrop, "it covers the page, as a background"),
    ]


def _solidity(traits: Traits) -> float:
    if traits.transparent or traits.pale:
        return 0.0
    return _SOLID_SLANTED if traits.slanted else _SOLID


def _repetition(traits: Traits) -> float:
    share = traits.pages / max(traits.of_pages, 1)
    if traits.pages >= 2 and share >= 0.8:
        return _ON_MOST
    return _ON_MANY if traits.pages >= 3 and share >= 0.3 else 0.0


def _limit(traits: Traits, words: Words) -> float:
    if traits.belongs or traits.plain_shape:
        return _MOST_FOR_ONE
    if traits.tiled and traits.slanted and traits.copies_a_page >= _TILED_ALL_OVER:
        return math.inf
    if traits.pages > 1 or (words is not Words.NONE and (traits.slanted or traits.transparent)):
        return math.inf
    return _MOST_FOR_ONE


def _why_limited(traits: Traits) -> str:
    if traits.belongs:
        return "the file says that it is part of the document"
    return "a plain shape or sign may be decoration" if traits.plain_shape else "it is on one page alone"


def _slant(angle: float) -> float:
    return min(abs(angle) % 180, 180 - abs(angle) % 180)

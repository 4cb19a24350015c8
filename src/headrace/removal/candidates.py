"""What is asked for one document, what may be a mark in it, and what was done.

The same for every kind of document: PDF and slides. Pictures have their own (``report``), for their marks are pixels.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from headrace.removal.errors import CandidateUnknown

# AUTO acts from the first score on; candidates under the second are not worth a person's look.
AUTO_SCORE, LISTED_SCORE = 0.7, 0.45
MOST_CANDIDATES = 50


class Mode(StrEnum):
    AUTO = "auto"  # take off what is certain
    MANUAL = "manual"  # take off what ``only`` names


class Outcome(StrEnum):
    NO_MARK = "no_mark"
    NEEDS_REVIEW = "needs_review"  # there are candidates, none certain: the user must name them
    REMOVED = "removed"
    FAILED = "failed"  # the check of the result found the mark, or damage


class Method(StrEnum):
    """What spoke for a candidate first."""

    NAMED = "named"  # the file itself calls it a watermark
    REPETITION = "repetition"  # the same on many pages, or many times on one
    APPEARANCE = "appearance"  # how it looks: slanted, transparent, what it says


@dataclass(frozen=True, slots=True)
class Box:
    """In points, from the upper left corner of the page as it is shown."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Candidate:
    id: int  # from 1, the surest first; what ``only`` names
    kind: str  # text, path, picture, form, annotation, shape, background …
    pages: tuple[int, ...]  # from 1
    copies: int  # over all pages
    box: Box  # on the first of its pages
    score: float
    method: Method
    reasons: tuple[str, ...]
    text: str | None = None

    @property
    def certain(self) -> bool:
        return self.score >= AUTO_SCORE


@dataclass(frozen=True, slots=True)
class DocumentOrder:
    source: str
    result: str | None = None  # None: detect only
    mode: Mode = Mode.AUTO
    only: tuple[int, ...] = ()  # candidates, by number
    pages: tuple[tuple[int, int], ...] = ()  # ranges from 1, both ends in; none is all
    password: str | None = None
    break_signature: bool = False
    overlay: str | None = None  # where a picture of the candidates goes; of a PDF alone
    preview: str | None = None  # where a page before and after goes, side by side; of a PDF alone
    force: bool = False  # replace files that are there

    def takes_page(self, number: int) -> bool:
        return not self.pages or any(first <= number <= last for first, last in self.pages)


@dataclass(frozen=True, slots=True)
class Check:
    """The result held against the original."""

    passed: bool
    reason: str | None
    residue_before: float  # how much of the mark is in the pages: 1 is all of it
    residue_after: float
    changed_area: float  # the share of the pages that looks different
    pages: int  # that were compared


@dataclass(frozen=True, slots=True)
class DocumentReport:
    """What was found, and what was done if a result was asked for."""

    format: str  # pdf, pptx, ppt
    pages: int
    candidates: tuple[Candidate, ...]
    outcome: Outcome | None  # None: only looked for
    reason: str | None
    removed: tuple[int, ...]  # the candidates that were taken off
    check: Check | None
    warnings: tuple[str, ...]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def require_known(candidates: tuple[Candidate, ...], order: DocumentOrder) -> None:
    """Raises ``CandidateUnknown`` for a number in ``only`` that nothing has."""
    unknown = sorted(set(order.only) - {each.id for each in candidates})
    if unknown:
        known = f"1 to {len(candidates)}" if candidates else "none"
        raise CandidateUnknown(
            f"{order.source} has no candidate {unknown[0]}: there are {known}. See `headrace detect`."
        )


def choose(candidates: tuple[Candidate, ...], order: DocumentOrder) -> tuple[Candidate, ...]:
    """The candidates to take off."""
    if order.only:
        return tuple(each for each in candidates if each.id in order.only)
    return tuple(each for each in candidates if each.certain) if order.mode is Mode.AUTO else ()


def nothing_chosen(candidates: tuple[Candidate, ...]) -> tuple[Outcome, str]:
    """Why nothing is taken off, for the report."""
    if not candidates:
        return Outcome.NO_MARK, "No mark was found."
    count = len(candidates)
    what = "One thing" if count == 1 else f"{count} things"
    return (
        Outcome.NEEDS_REVIEW,
        f"{what} may be a mark, but is not certain: look with `headrace detect`, then name them with `--only`.",
    )

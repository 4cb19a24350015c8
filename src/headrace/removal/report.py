"""What may be a mark in a file, and what was done with it: the same for every kind of media."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from headrace.removal.errors import CandidateUnknown
from headrace.removal.order import FailureCode
from headrace.removal.thresholds import MAX_FURNITURE_SCORE, MIN_CLEAN_CONFIDENCE, MIN_CONFIDENCE, MIN_DETAIL_RATIO

MAX_LISTED_PAGES, MAX_LISTED_SPANS, MAX_LISTED_REASONS, MAX_TEXT_LETTERS = 100, 100, 6, 120


class Outcome(StrEnum):
    NO_MARK = "no_mark"
    NEEDS_REVIEW = "needs_review"  # there are candidates, none certain: the user must name them
    REMOVED = "removed"
    FAILED = "failed"  # the check of the result found the mark, or damage


class Verdict(StrEnum):
    """One verdict on a result, for the command and the service: by its confidence and the check of the written file."""

    CLEAN = "CLEAN"
    LOOK = "LOOK"  # handed out and charged; worth a look
    POOR = "POOR"  # not handed out, unless the order accepts poor results


def of_confidence(confidence: float) -> Verdict:
    if confidence < MIN_CONFIDENCE:
        return Verdict.POOR
    return Verdict.CLEAN if confidence >= MIN_CLEAN_CONFIDENCE else Verdict.LOOK


def of_check(check: "Check") -> Verdict:
    """The verdict on a file that passed its check."""
    return Verdict.LOOK if check.detail is not None and check.detail < MIN_DETAIL_RATIO else Verdict.CLEAN


class Method(StrEnum):
    """Where the pixels under a mark come from."""

    COMPUTED = "computed"  # from what shines through
    INVENTED = "invented"  # filled in from around it
    BOTH = "both"


class Box(NamedTuple):
    """In pixels of the upright picture, or in points from the upper left corner of the page as it is shown."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may be a mark."""

    id: int  # from 1, the surest first; what an order names
    kind: str  # region, text, path, picture, form, annotation, shape, fixed, moving …
    method: str  # what spoke for it first
    score: float
    certain: bool  # removed unless the order names others
    box: Box  # of what is on many pages or moves, where it is first
    reasons: tuple[str, ...] = ()
    text: str | None = None
    pages: tuple[int, ...] = ()  # of a document, from 1
    copies: int = 1  # over all pages
    seconds: tuple[tuple[float, float], ...] = ()  # of a clip, in which it was seen, to the nearest sampled frames
    backgrounds: int = 0  # different frames of a clip that it was seen over
    opacity: float | None = None  # in a clip: the mean strength, 0 to 1

    @property
    def is_suspect(self) -> bool:
        """Whether something but its place says that it is a mark."""
        return self.score > MAX_FURNITURE_SCORE

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values, with no more than a list of candidates has room for."""
        return asdict(self) | {
            "box": list(self.box),
            "score": round(float(self.score), 4),
            "reasons": self.reasons[:MAX_LISTED_REASONS],
            "text": None if self.text is None else self.text[:MAX_TEXT_LETTERS],
            "pages": self.pages[:MAX_LISTED_PAGES],
            "seconds": self.seconds[:MAX_LISTED_SPANS],
        }


@dataclass(frozen=True, slots=True)
class Check:
    """The written file held against the original."""

    passed: bool
    reason: str | None
    residue_before: float  # how much of the mark is in the file: 1 is all of it
    residue_after: float
    changed_area: float | None = None  # the share of the picture or the pages that looks different
    pages: int | None = None  # that were compared
    frames: int | None = None  # that were compared
    # Of a picture:
    outline_left: float | None = None  # the share of the mark's outline
    seen_on_flat: float | None = None  # the share of the mark's pixels on flat ground
    untouched: bool | None = None  # whether everything else is as it was
    untouched_db: float | None = None  # None: every other pixel is exactly as it was
    # Of a clip:
    remains: bool | None = None  # the mark, or some of it
    seen_again: Box | None = None  # where a second look at the result finds some of it, as the clip is shown
    seen_within: bool | None = None  # whether that is where the mark was, and not beside it
    held_back: bool | None = None  # failed only a check that `accept_poor` waives: an order with it gets this file
    worst_shot: float | None = None  # how much of the mark is in the shot that has most of it
    detail: float | None = None  # of wide filled places, as a share of the detail around them

    def figures(self) -> dict[str, Any]:
        """What there is of it, for this kind of media."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        if self.seen_again is not None:
            known["seen_again"] = list(self.seen_again)
        return known if self.untouched is None else known | {"untouched_db": self.untouched_db}


@dataclass(frozen=True, slots=True)
class Report:
    """What a stage, or all of them, found and did. ``refused`` is a code: the removal ends with it."""

    facts: dict[str, Any] = field(default_factory=dict)  # for ``task_steps.detail`` and ``--json``
    candidates: tuple[Candidate, ...] = ()
    keeps: list[str] = field(default_factory=list)  # files that later stages need
    refused: FailureCode | None = None
    reason: str | None = None

    @property
    def outcome(self) -> Outcome | None:
        """None: only looked for."""
        if self.refused is not None:
            ends = {FailureCode.NO_MARK: Outcome.NO_MARK, FailureCode.NEEDS_REVIEW: Outcome.NEEDS_REVIEW}
            return ends.get(self.refused, Outcome.FAILED)
        return None if self.verdict is None else Outcome.REMOVED

    @property
    def verdict(self) -> Verdict | None:
        """On the result; None where there is none."""
        return None if self.refused is not None or "verdict" not in self.facts else Verdict(self.facts["verdict"])

    @property
    def needs_look(self) -> bool:
        """Whether a person should look at the result: its verdict is LOOK or POOR."""
        return self.verdict not in (None, Verdict.CLEAN)

    @property
    def suspects(self) -> tuple[Candidate, ...]:
        """The candidates that something but their place speaks for."""
        return tuple(each for each in self.candidates if each.is_suspect)

    @property
    def removed(self) -> tuple[int, ...]:
        """The candidates that were taken off."""
        return tuple(self.facts.get("removed", ()))

    @property
    def check(self) -> Check | None:
        figures = self.facts.get("check")
        if figures is None:
            return None
        again = figures.get("seen_again")
        return Check(**{"reason": None, **figures, "seen_again": again and Box(*again)})

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the result has lost, or what was not searched."""
        return tuple(self.facts.get("warnings", ()))

    @property
    def method(self) -> Method | None:
        """Where the pixels come from, of a picture or a clip."""
        if self.outcome is not Outcome.REMOVED:
            return None
        if "method" in self.facts:
            return Method(self.facts["method"])
        if not self.facts.get("invented"):
            return Method.COMPUTED if "computed" in self.facts else None
        return Method.BOTH if self.facts["computed"] else Method.INVENTED

    def as_json(self) -> dict[str, Any]:
        """One flat object, as ``--json`` prints it."""
        done = {
            "outcome": self.outcome,
            "reason": self.reason,
            "removed": self.removed,
            "method": self.method,
            "poor": self.needs_look,
            "needs_review": self.refused is FailureCode.NEEDS_REVIEW,
        }
        return {**self.facts, "candidates": [each.as_json() for each in self.candidates], **done}


def require_known(known: int, candidates: Sequence[int]) -> None:
    """Raises ``CandidateUnknown`` for a number above that of the known ones."""
    if candidates and max(candidates) > known:
        raise CandidateUnknown(f"There is no candidate {max(candidates)}: there are {known}.")


class NotCleaned(Exception):
    """A document was left as it is: nothing was written."""

    def __init__(self, code: FailureCode, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason

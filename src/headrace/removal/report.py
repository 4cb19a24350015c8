"""What is asked for one picture, and what was done with it."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from headrace.removal.verdict import Verdict

Rectangle = tuple[int, int, int, int]  # left, top, width, height, in pixels


@dataclass(frozen=True, slots=True)
class Order:
    source: str
    result: str | None = None  # None: detect only
    mask: str | None = None  # where the mark's pixels are written
    threads: int = 2
    least_score: float = 0.5
    force: bool = False  # replace files that are there
    boxes: tuple[Rectangle, ...] = ()  # the mark is in these alone
    keep: tuple[Rectangle, ...] = ()  # nothing in these changes
    drawn: str | None = None  # a picture that is white where the mark is
    only: tuple[int, ...] = ()  # numbers of regions, from 1; none is all
    strength: float = 1.0  # how much of the change is made
    thorough: bool = False  # work on it twice
    compare: str | None = None  # before, mask and after are written beside each other


@dataclass(frozen=True, slots=True)
class ManyOrder:
    """Pictures that may have the same mark."""

    orders: tuple[Order, ...]  # one for each picture, each with a result


class Method(StrEnum):
    """Where the pixels under the mark come from."""

    COMPUTED = "computed"  # from what shines through
    INVENTED = "invented"  # filled in from around it
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class MarkedRegion:
    left: int
    top: int
    width: int
    height: int
    score: float
    certain: bool  # removed unless the order names others


@dataclass(frozen=True, slots=True)
class Removal:
    """How taking the mark off went. ``reason`` says why nothing was ``removed``."""

    removed: bool
    reason: str | None
    confidence: float
    poor: bool  # of so little confidence that a person should look at it
    computed: int  # pixels
    invented: int
    warnings: tuple[str, ...]  # what the file has lost
    needs_review: bool = False  # a mark may be there, but the user must confirm it
    doubt: str | None = None  # why it is poor, where more is known than its confidence
    verdict: Verdict | None = None

    @property
    def method(self) -> Method | None:
        if not self.removed:
            return None
        if not self.invented:
            return Method.COMPUTED
        return Method.BOTH if self.computed else Method.INVENTED


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, and what was done if a result was asked for."""

    width: int
    height: int
    score: float  # the probability that there is a mark at all
    regions: tuple[MarkedRegion, ...]  # the surest first
    covered: float  # the share of the picture
    seconds: float
    removal: Removal | None = None

    def as_json(self) -> dict[str, Any]:
        """One flat object, as ``--json`` prints it."""
        fields = asdict(self)
        removal: dict[str, Any] = fields.pop("removal") or {}
        if self.removal is not None:
            removal["method"] = self.removal.method
        return {**fields, **removal}


@dataclass(frozen=True, slots=True)
class ManyReport:
    reports: tuple[Report | None, ...]  # in the order of the pictures; None: left to be done alone

"""Statistics as they are kept and shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate

MINUTE = timedelta(minutes=1)
KEEP = timedelta(days=8)  # a week, and the period before it

# Upper bounds of a histogram's classes, in seconds; the last class has none. Fixed: old rows are read with them, too.
BOUNDS = (
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0,
    3600.0, 21600.0, 86400.0,
)  # fmt: skip


class Range(StrEnum):
    """How far back, and in how many steps: few enough to draw."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"

    @property
    def length(self) -> timedelta:
        return {Range.HOUR: timedelta(hours=1), Range.DAY: timedelta(days=1), Range.WEEK: timedelta(days=7)}[self]

    @property
    def step(self) -> timedelta:
        return {Range.HOUR: MINUTE, Range.DAY: timedelta(minutes=10), Range.WEEK: timedelta(hours=1)}[self]


@dataclass(frozen=True, slots=True)
class Point:
    """One step. Counts are sums over it; samples (``waiting`` and after) are None without a measurement.
    Of waiting the maximum is shown, of the others the mean."""

    at: datetime
    submitted: int
    succeeded: int
    failed: int
    canceled: int
    waiting: int | None
    delayed: int | None
    running: float | None
    oldest_seconds: float | None
    workers: float | None
    slots: float | None
    waited: Sequence[int] = ()
    ran: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class QueueSeries:
    """One queue over the same steps."""

    name: str
    waiting: Sequence[int | None]
    ended: Sequence[int]
    failed: Sequence[int]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The requested statistics. Steps without a measurement have no point."""

    range: Range
    since: datetime
    until: datetime
    points: Sequence[Point]
    queues: Sequence[QueueSeries]


def quantile(counts: Sequence[int], share: float) -> float | None:
    """The value in seconds that this share of a histogram lies below, as near as its classes tell; None of nothing."""
    total = sum(counts)
    if total == 0:
        return None
    wanted = share * total
    for position, reached in enumerate(accumulate(counts)):
        if reached >= wanted and counts[position]:
            if position == len(BOUNDS):
                return BOUNDS[-1]
            low = BOUNDS[position - 1] if position else 0.0
            within = (wanted - (reached - counts[position])) / counts[position]
            return low + (BOUNDS[position] - low) * within
    return BOUNDS[-1]

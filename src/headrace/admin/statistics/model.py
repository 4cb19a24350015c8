"""Statistics as they are kept and shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate
from math import ceil

MINUTE = timedelta(minutes=1)
KEEP = timedelta(days=8)  # a week, and the period before it

# Durations are counted in classes whose bounds grow by a fixed ratio: the middle of a class is at most this far from
# each duration in it. Fixed: old rows are read with them, too.
MAX_RELATIVE_ERROR = 0.01
CLASS_RATIO = (1 + MAX_RELATIVE_ERROR) / (1 - MAX_RELATIVE_ERROR)
SHORTEST_SECONDS = 0.001  # class 0 holds everything up to here
ALL_TYPES = ""


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
class Durations:
    """How many tasks had a duration of each class, and the longest of them in seconds."""

    classes: Sequence[int] = ()
    counts: Sequence[int] = ()
    longest: float | None = None

    def quantile(self, share: float) -> float | None:
        """The duration in seconds that this share of the tasks did not exceed; None without a task.

        At most ``MAX_RELATIVE_ERROR`` off the exact one (or below ``SHORTEST_SECONDS``), and never above the longest.
        """
        if self.longest is None:
            return None
        rank = max(ceil(share * sum(self.counts)), 1)
        for position, reached in zip(self.classes, accumulate(self.counts), strict=True):
            if reached >= rank:
                middle = SHORTEST_SECONDS * 2 * CLASS_RATIO**position / (CLASS_RATIO + 1)
                return max(min(middle, self.longest), 0.0)
        return self.longest


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
    needs_input: int = 0
    slots_busy: float | None = None
    waited: Durations = Durations()
    ran: Durations = Durations()


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
    task_type: str | None = None
    types: Sequence[str] = ()

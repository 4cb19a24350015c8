"""Figures for `/metrics`: counted by a process, or read elsewhere.

Counting adds to plain numbers, because a worker does so for every task; ``web`` renders them. Labels come from closed
sets, so that clients cannot create series.
"""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

OTHER = "(other)"
"""The label of all values beyond the limit."""

Labels = tuple[str, ...]


class Kind(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"  # only grows, from 0 at the start of the process
    HISTOGRAM = "histogram"


@dataclass(slots=True)
class Histogram:
    """How many observations fell below each bound, the rest above the last, and their sum."""

    bounds: Sequence[float]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def __add__(self, other: "Histogram") -> "Histogram":
        counts = [one + another for one, another in zip(self.counts, other.counts, strict=True)]
        return Histogram(self.bounds, counts, self.total + other.total)


@dataclass(frozen=True, slots=True)
class Figure:
    """One value, or one histogram, for each set of labels."""

    name: str
    help: str
    labels: Labels = ()
    values: Mapping[Labels, float] = field(default_factory=dict)
    histograms: Mapping[Labels, Histogram] = field(default_factory=dict)
    kind: Kind = Kind.GAUGE


Figures = Callable[[], Awaitable[Sequence[Figure]]]
"""Returns figures beyond this process, such as those of the database."""


async def no_figures() -> Sequence[Figure]:
    return ()


Reasons = Callable[[], Sequence[str]]  # why a process is not ready


def no_reasons() -> Sequence[str]:
    return ()


class Meters:
    """The figures of one process in all its roles, and its version."""

    def __init__(self, role: str | None = None, version: str = "") -> None:
        self._sources: list[Callable[[], Iterable[Figure]]] = []
        if role is not None:
            info = Figure(
                "headrace_info", "Role and version of this process.", ("role", "version"), {(role, version): 1}
            )
            self.add(lambda: [info])

    def add(self, source: Callable[[], Iterable[Figure]]) -> None:
        self._sources.append(source)

    def read(self) -> list[Figure]:
        """All figures; equal ones of several sources are added up."""
        found: dict[str, Figure] = {}
        for source in self._sources:
            for figure in source():
                known = found.get(figure.name)
                found[figure.name] = figure if known is None else _added(known, figure)
        return list(found.values())


def _added(one: Figure, other: Figure) -> Figure:
    values = dict(one.values)
    for labels, value in other.values.items():
        values[labels] = values.get(labels, 0) + value
    histograms = dict(one.histograms)
    for labels, histogram in other.histograms.items():
        histograms[labels] = histograms[labels] + histogram if labels in histograms else histogram
    return replace(one, values=values, histograms=histograms)

"""What was measured, against what it should be."""

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rich.console import Console
from rich.table import Table

console = Console(stderr=True)

Sizes = TypeVar("Sizes")
Targets = Mapping[str, tuple[str, float]]
"""What a figure is and how much of it there should be: at least so much, or at most, written as its negative."""


@dataclass
class Run(Generic[Sizes]):
    """One run: figures by name, in rounds if there are several. ``digits`` is how finely they are shown."""

    url: str
    sizes: Sizes
    digits: int
    figures: dict[str, list[float]] = field(default_factory=dict)

    def note(self, name: str, value: float) -> None:
        self.figures.setdefault(name, []).append(value)
        console.print(f"  {name:<28} {value:>14,.{self.digits}f}", highlight=False)

    def median(self, name: str) -> float:
        return statistics.median(self.figures[name])

    def medians(self) -> dict[str, float]:
        return {name: self.median(name) for name in self.figures}

    def paired(self, ours_name: str, theirs_name: str) -> float:
        """The median of the ratios of neighbouring rounds: what disturbs both cancels out."""
        pairs = zip(self.figures[ours_name], self.figures[theirs_name], strict=False)
        return statistics.median(mine / theirs for mine, theirs in pairs)


def print_rounds(run: Run[Sizes], *, title: str | None = None, digits: int) -> None:
    table = Table("measured", "median", "lowest", "highest", "rounds", title=title)
    for name, values in run.figures.items():
        shown = (f"{each:,.{digits}f}" for each in (statistics.median(values), min(values), max(values)))
        table.add_row(name, *shown, str(len(values)))
    console.print(table)


def print_targets(found: Mapping[str, float], targets: Targets, *, heading: str = "figure") -> None:
    table = Table(heading, "what", "found", "target", "")
    for name, (what, target) in targets.items():
        if name in found:
            good = found[name] <= -target if target < 0 else found[name] >= target
            bound = f"{'≤' if target < 0 else '≥'} {abs(target):,.10g}"
            table.add_row(name, what, f"{found[name]:,.2f}", bound, "✓" if good else "✗")
    console.print(table)


def print_json(figures: Mapping[str, float], *, digits: int = 3, medians: Mapping[str, float] | None = None) -> None:
    """One flat object, last on standard output; ``medians`` more coarsely, if they are not the figures themselves."""
    coarse = {name: round(value, digits) for name, value in (medians or {}).items()}
    print(json.dumps({name: round(value, 3) for name, value in figures.items()} | coarse))

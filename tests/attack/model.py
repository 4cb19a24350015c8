"""What must hold in the tables, and what was found not to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Invariant:
    """``sql`` gives the rows that break it; ``at_rest`` if it need not hold while tasks wait and run."""

    holds: str
    tables: tuple[str, ...]
    sql: str
    at_rest: bool = False


@dataclass(frozen=True, slots=True)
class Broken:
    holds: str
    rows: Sequence[dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.holds}: " + "; ".join(", ".join(f"{k}={v}" for k, v in row.items()) for row in self.rows)

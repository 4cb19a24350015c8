"""What was done, what came of it, and how to do it again."""

from collections import Counter
from dataclasses import dataclass, field

from tests.chaos.faults import Planned
from tests.chaos.load import Promises


@dataclass
class Report:
    seed: int
    seconds: float
    promises: Promises
    faults: list[tuple[Planned, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    fallen: Counter[str] = field(default_factory=Counter)
    ends: dict[str, int] = field(default_factory=dict)
    figures: dict[str, object] = field(default_factory=dict)
    judged: dict[str, int] = field(default_factory=dict)
    details: list[str] = field(default_factory=list)
    histories: list[str] = field(default_factory=list)
    rest_s: float = 0.0

    def fault(self, planned: Planned, done: str) -> None:
        self.faults.append((planned, done))

    @property
    def counts(self) -> dict[str, int]:
        """What was done and judged. A run with a zero in it has not tried what it is for."""
        done = [how for _, how in self.faults if not any(word in how for word in ("nothing", "nobody", "skipped"))]
        return {"faults": len(done), **self.judged}

    @property
    def all_broken(self) -> list[str]:
        answers = [f"{number} times: {what}" for what, number in self.promises.offences.items()]
        crashes = [
            f"{number} times: {what}"
            for what, number in self.fallen.items()
            if "should not have" in what or "Traceback" in what
        ]
        untried = [f"there were no {name} to judge" for name, number in self.counts.items() if not number]
        return [*self.broken, *answers, *crashes, *untried]

    def text(self) -> str:
        kinds = Counter(planned.name for planned, _ in self.faults)
        nothing = [
            f"{planned.name}: {done}"
            for planned, done in self.faults
            if "nothing" in done or "skipped" in done or "nobody" in done
        ]
        sections = {
            "faults": [f"{number} × {name}" for name, number in sorted(kinds.items())],
            "came to nothing": [f"{number} × {what}" for what, number in Counter(nothing).items()],
            "work": [f"{number} × {name}" for name, number in self.promises.done.items()],
            "in detail": self.details,
            "figures": [f"{name}: {value}" for name, value in self.figures.items()],
            "ended by themselves": [f"{number} × {what}" for what, number in self.fallen.items()],
            "ends": [f"{number} × {what}" for what, number in self.ends.items()],
            "BROKEN": self.all_broken or ["nothing"],
            "histories": self.histories,
        }
        told = ", ".join(f"{number} {name}" for name, number in self.counts.items())
        lines = [f"judged: {told}", f"at rest {self.rest_s:.1f} s after the last fault"]
        for title, entries in sections.items():
            if entries:
                lines += ["", f"{title}:", *(f"  {entry}" for entry in entries)]
        again = f"make chaos minutes={self.seconds / 60:g} seed={self.seed}"
        return "\n".join([*lines, "", f"the same faults and requests again: {again}", ""])

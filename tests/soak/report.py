"""What a soak saw, and whether it may be so."""

from dataclasses import dataclass, field

from tests.chaos.load import Promises
from tests.soak import figures

LONGEST_WARM_UP = 600.0  # seconds


@dataclass
class Soaked:
    seconds: float
    times: list[float] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)
    tables: list[dict[str, float]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    promises: Promises = field(default_factory=Promises)
    judged: dict[str, int] = field(default_factory=dict)

    @property
    def warm(self) -> int:
        """The number of the first sample that is judged."""
        limit = min(LONGEST_WARM_UP, self.seconds / 3)
        return next((number for number, at in enumerate(self.times) if at >= limit), 0)

    def verdicts(self) -> list[figures.Verdict]:
        times, samples = self.times[self.warm :], self.samples[self.warm :]
        return [
            figures.judge(name, times, [each[name] for each in samples], limit)
            for name, limit in figures.LIMITS.items()
        ]

    @property
    def failures(self) -> list[str]:
        if len(self.samples) - self.warm < 3:
            return ["fewer than three samples after the warm-up: run it for longer"]
        risen = [
            f"{each.name} rises by {each.rise:.1f}, {each.limit:g} may be"
            for each in self.verdicts()
            if each.is_too_much
        ]
        growth = figures.per_thousand_tasks(self.samples[self.warm :])
        if growth > figures.MOST_PER_1000_TASKS:
            risen.append(f"the database grows by {growth:.1f} MB a thousand tasks")
        answers = [f"{number} times: {what}" for what, number in self.promises.offences.items()]
        untried = [f"there were no {name} to judge" for name, number in self.judged.items() if not number]
        return [*risen, *self.broken, *answers, *untried]

    def text(self) -> str:
        if len(self.samples) - self.warm < 3:
            return "\n".join(self.failures) + "\n"
        told = ", ".join(f"{number} {name}" for name, number in self.judged.items())
        first, last = self.tables[self.warm], self.tables[-1]
        grown = sorted(((last[name] - first.get(name, 0.0), name) for name in last), reverse=True)[:10]
        growth = figures.per_thousand_tasks(self.samples[self.warm :])
        lines = [
            f"judged: {told}",
            f"{len(self.samples)} samples, {len(self.samples) - self.warm} of them after the warm-up "
            f"of {self.times[self.warm]:.0f} s; MB where nothing else is said",
            figures.HEAD,
            *(each.line() for each in self.verdicts()),
            f"  database MB per 1,000 tasks: {growth:.1f} (limit {figures.MOST_PER_1000_TASKS:g})",
            "",
            "tables that grew most (rows are kept): " + ", ".join(f"{name} {mb:+.1f} MB" for mb, name in grown),
            "",
            "work: " + ", ".join(f"{number} × {what}" for what, number in self.promises.done.items()),
            "",
            "FAILED:" if self.failures else "nothing rises, nothing is broken",
            *(f"  {each}" for each in self.failures),
        ]
        return "\n".join(lines) + "\n"

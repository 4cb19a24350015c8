"""What a worker has done, in all and by type."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headrace.figures import OTHER, Figure, Histogram, Kind
from headrace.tasks.model import Ending, Outcome
from headrace.tasks.worker.slots import Load

MAX_TYPES = 200
# From a no-op to an hour; what takes longer is above the last.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
_FINAL = {Outcome.SUCCEEDED: "succeeded", Outcome.FAILED: "failed", Outcome.CANCELED: "canceled"}
_AGAIN = {Outcome.RETRIED: "failed", Outcome.SNOOZED: "snoozed", Outcome.INTERRUPTED: "interrupted"}


@dataclass(slots=True)
class Figures:
    """For a worker's line on the screen and for metrics."""

    types: Iterable[str] = ()
    finished: int = 0
    failed: int = 0
    lost: int = 0
    leases_lost: int = 0
    started: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    durations: dict[str, Histogram] = field(default_factory=dict)
    _labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._labels = {name: name for name, _ in zip(sorted(self.types), range(MAX_TYPES), strict=False)}
        for label in self._labels.values():
            self.durations[label] = Histogram(BOUNDS)

    def label(self, task_type: str) -> str:
        return self._labels.get(task_type, OTHER)

    def began(self, task_type: str) -> None:
        self.started[self.label(task_type)] += 1

    def ended(self, task_type: str, seconds: float) -> None:
        """An attempt is over, whatever becomes of its end."""
        label = self.label(task_type)
        if (known := self.durations.get(label)) is None:
            known = self.durations[label] = Histogram(BOUNDS)
        known.observe(seconds)

    def wrote(self, endings: Sequence[Ending]) -> None:
        """These ends are in the database."""
        for each in endings:
            self.outcomes[self.label(each.claimed.task_type), each.outcome] += 1

    def read(self) -> list[Figure]:
        """For `/metrics`. A type without any runs shows as 0: an alarm needs an existing series."""
        labels = [*self._labels.values(), *([OTHER] if OTHER in self.started else [])]
        counter = Kind.COUNTER
        return [
            Figure(
                "headrace_tasks_started_total",
                "Attempts that this worker began.",
                ("type",),
                {(label,): self.started[label] for label in labels},
                kind=counter,
            ),
            Figure(
                "headrace_tasks_finished_total",
                "Tasks that ended here, by outcome.",
                ("type", "outcome"),
                {(label, word): self.outcomes[label, outcome] for label in labels for outcome, word in _FINAL.items()},
                kind=counter,
            ),
            Figure(
                "headrace_tasks_retried_total",
                "Attempts that ended here and are followed by another: failed, put off by the handler (snoozed), or "
                "cut off by a shutdown (interrupted).",
                ("type", "reason"),
                {(label, word): self.outcomes[label, outcome] for label in labels for outcome, word in _AGAIN.items()},
                kind=counter,
            ),
            Figure(
                "headrace_task_duration_seconds",
                "How long attempts took, however they ended.",
                ("type",),
                histograms={(label,): histogram for label, histogram in self.durations.items()},
                kind=Kind.HISTOGRAM,
            ),
            Figure(
                "headrace_tasks_lost_total",
                "Ends that could not be written because the task was no longer this worker's.",
                values={(): self.lost},
                kind=counter,
            ),
            Figure(
                "headrace_worker_leases_lost_total",
                "How often other workers declared this one dead, or it was silent for too long, and had to start over. "
                "Alarm when it grows.",
                values={(): self.leases_lost},
                kind=counter,
            ),
        ]


def blocked_figure(ends: int) -> Figure:
    return Figure(
        "headrace_worker_blocked_ends",
        "Ends that this worker cannot write yet because another transaction has locked the units of the tasks' owners. "
        "Alarm when it stays above 0: headrace doctor names the session.",
        values={(): ends},
    )


def slots_figure(load: Load) -> Figure:
    return Figure(
        "headrace_worker_process_slots",
        "Tasks that this worker process can run at once, by isolation (async, thread, process) or pool (removal), and "
        "how many it runs; prefetched ones are claimed and have not begun.",
        ("isolation", "state"),
        {
            (slots.pool, state): count
            for slots in load
            for state, count in (
                ("total", slots.size),
                ("busy", slots.running),
                ("prefetched", len(slots.prefetched)),
            )
        },
    )

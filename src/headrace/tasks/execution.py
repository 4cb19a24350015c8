"""How attempts of a task type run: where, with which pauses between them, and what a child process may use."""

import random
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Literal

from headrace.errors import Invalid

Isolation = Literal["async", "thread", "process"]


class BadTaskType(Invalid):
    """A task type is declared wrongly."""

    code = "bad_task_type"


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between attempts: they grow by ``factor`` up to ``cap``; jitter spreads what failed together.

    >>> @registry.task("mail.send", max_attempts=8, backoff=Backoff(first=timedelta(seconds=10), factor=3))
    """

    first: timedelta = timedelta(seconds=2)
    """The pause after the first failure."""
    factor: float = 2.0
    """By how much each pause is longer than the one before."""
    cap: timedelta = timedelta(hours=1)
    """The longest pause."""
    jitter: float = 0.2
    """By which part a pause is made longer or shorter, at random."""

    def delay(self, retries: int) -> timedelta:
        """The pause before the next attempt when ``retries`` have been spent before this failure."""
        # The exponent is bounded: 2.0 ** 2000 would raise instead of reaching the cap.
        seconds = min(self.first.total_seconds() * self.factor ** min(retries, 64), self.cap.total_seconds())
        pause = timedelta(seconds=seconds)
        return pause * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311 - spreads load, guards nothing


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of one task in its child process (``isolation="process"``); None is no limit.

    The defaults stop runaway tasks and hinder no ordinary one. All but ``wall_seconds`` hold for each
    process that the handler starts by itself; the worker's own limits, where they are lower, hold in any case.
    """

    memory_bytes: int | None = 4 * 1024**3
    """Address space, on top of what the loaded program has taken."""
    cpu_seconds: int | None = 6 * 3600
    """Of all threads together."""
    file_bytes: int | None = 8 * 1024**3
    """The largest file that may be written."""
    open_files: int | None = 1024
    """Files and sockets at once."""
    # The kernel counts all processes and threads of a user, the worker's among them, and root's never: no default fits.
    processes: int | None = None
    """Processes and threads of the worker's user together, wherever they run; no limit for root."""
    wall_seconds: int | None = 24 * 3600
    """By the clock, beyond any timeout: afterwards it is killed, whatever it asked for."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and value < 1:
                raise BadTaskType(f"{each.name} must be at least 1, or None for no limit; not {value}.")

"""How a worker works."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import gettempdir

from headrace.cpus import available_cpus
from headrace.tasks.execution import Isolation


def own_scratch() -> Path:
    """By user: a folder of another user of this machine cannot be written to."""
    return Path(gettempdir()) / f"headrace-scratch-{os.getuid()}"


@dataclass(frozen=True, slots=True)
class Pool:
    """Slots for some task types alone, whatever their isolation."""

    size: int
    types: frozenset[str]


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """How a worker works. The defaults are good for most."""

    queues: Sequence[str] | None = None
    """Take tasks from these queues only; None is all of them."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What this worker has to offer; tasks that ask for it come here."""
    concurrency: int = 50
    """Async handlers at the same time."""
    threads: int | None = None
    """Handlers in threads at the same time; None is as many as ``concurrency``."""
    lease: timedelta = timedelta(seconds=15)
    """Silent for longer, it is given up, and its tasks go to others."""
    poll_every: timedelta = timedelta(seconds=1)
    """The interval of its polls for work without a wake-up; five times as long at rest while it listens."""
    listen: bool = True
    """False: poll only, for a database behind a transaction pooler."""
    most_prefetched: int = 4000
    """Maximum number of tasks that it holds before they start."""
    batch: int = 2000
    """Maximum number of tasks per claim."""
    most_unwritten: int = 3000
    """How many ends may wait to be written before no further handler starts: they run again if it is killed."""
    ahead: timedelta = timedelta(milliseconds=150)
    """For how long ahead it takes tasks: enough to bridge a claim's round trip, too little to hoard."""
    shutdown_timeout: timedelta = timedelta(seconds=30)
    """How long running tasks may continue after a request to stop."""
    result_limit: int = 256 * 1024
    """The largest result, in bytes of JSON."""
    scratch: Path = field(default_factory=own_scratch)
    """Where the folders of ``context.scratch`` are made; by default a folder of this user's in the temporary folder."""
    children: int = field(default_factory=available_cpus)
    """Processes for handlers at once (``isolation="process"``)."""
    pools: Mapping[str, Pool] = field(default_factory=dict)
    """Slots of their own for some types, by a name that is no isolation; all others share those of their isolation."""

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        if self.children < 1 or (self.threads is not None and self.threads < 1):
            raise ValueError("threads and children must be at least 1")
        if self.most_unwritten < 1:
            raise ValueError("most_unwritten must be at least 1")
        if self.lease < timedelta(milliseconds=300):
            raise ValueError("a lease under 300 ms would be lost by a pause of the interpreter")

    def slots(self, isolation: Isolation) -> int:
        """How many handlers of this kind run at once."""
        match isolation:
            case "async":
                return self.concurrency
            case "thread":
                return self.threads or self.concurrency
            case "process":
                return self.children

    @property
    def beat_every(self) -> timedelta:
        """So often it says that it is alive."""
        return self.lease / 3

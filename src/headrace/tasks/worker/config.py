"""How a worker works."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import gettempdir


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    queues: Sequence[str] | None = None  # None: all of them
    labels: Mapping[str, str] = field(default_factory=dict)
    concurrency: int = 50
    # The lease of everything this worker holds: silent for longer, it is given up and its tasks go to others.
    lease: timedelta = timedelta(seconds=15)
    poll_every: timedelta = timedelta(seconds=1)
    listen: bool = True  # False: poll only, for a database behind a transaction pooler
    most_prefetched: int = 4000
    batch: int = 2000
    # How many ends may wait to be written before no further handler starts: they run again if the worker is killed.
    most_unwritten: int = 3000
    # How long ahead it takes: enough to bridge a claim's round trip, too little to hoard.
    ahead: timedelta = timedelta(milliseconds=150)
    shutdown_timeout: timedelta = timedelta(seconds=30)
    result_limit: int = 256 * 1024
    scratch: Path = Path(gettempdir()) / "headrace-scratch"
    children: int = field(default_factory=lambda: os.cpu_count() or 1)  # processes for handlers at once

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        if self.most_unwritten < 1:
            raise ValueError("most_unwritten must be at least 1")
        if self.lease < timedelta(milliseconds=300):
            raise ValueError("a lease under 300 ms would be lost by a pause of the interpreter")

    @property
    def beat_every(self) -> timedelta:
        return self.lease / 3

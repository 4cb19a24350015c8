"""What a worker has taken on: the one owner of what its feeder, its runners and its writer share."""

from collections import deque

from headrace.tasks.model import Claimed
from headrace.tasks.worker.runs import Run


class Load:
    """Tasks that are prefetched and tasks that run. What is over belongs to ``WriteBehind``."""

    def __init__(self) -> None:
        self.prefetched: deque[Claimed] = deque()
        # By claim, not by task: after a lost lease the next attempt may begin here before the last one has stopped.
        self.runs: dict[tuple[int, int], Run] = {}

    def __len__(self) -> int:
        return len(self.prefetched) + len(self.runs)

    def drop_prefetched(self) -> list[Claimed]:
        """What has not started, which is nobody's business here any more."""
        dropped = list(self.prefetched)
        self.prefetched.clear()
        return dropped

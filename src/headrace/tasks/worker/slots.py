"""A worker's slots of each pool: the state that its feeder, runners and writer share.

A pool is a kind of isolation, or some types that have slots of their own (removal). A task is claimed only when a slot
of its pool is free. So tasks that wait for a child process take no place from those on the event loop.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

from headrace.tasks.execution import Isolation
from headrace.tasks.model import Claimed
from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.runs import Run


class Slots:
    """The slots of one pool: their prefetched and running tasks, and the waiting runners."""

    def __init__(self, pool: str, size: int, types: Iterable[str]) -> None:
        self.pool = pool
        self.size = size
        self.types = sorted(types)
        self.prefetched: deque[Claimed] = deque()
        self.idle: deque[asyncio.Future[None]] = deque()
        self.running = 0
        self.task_seconds = 1.0  # that a handler takes, smoothed; slow until it is known better

    def __len__(self) -> int:
        return len(self.prefetched) + self.running

    def learn(self, seconds: float) -> None:
        """Learn how long handlers take."""
        self.task_seconds += 0.02 * (seconds - self.task_seconds)

    def wake_runners(self) -> None:
        # Only as many as there is work for: waking a hundred for one task would delay that one.
        for _ in range(min(len(self.prefetched), len(self.idle))):
            waiting = self.idle.popleft()
            if not waiting.done():
                waiting.set_result(None)


class Load:
    """The slots of a worker, and their tasks. Ended tasks belong to ``WriteBehind``."""

    def __init__(self, config: WorkerConfig, registry: Registry) -> None:
        self.slots: dict[str, Slots] = {}
        shared: dict[Isolation, list[str]] = {}
        for name in registry.names:
            if not any(name in pool.types for pool in config.pools.values()):
                shared.setdefault(registry.get(name).isolation, []).append(name)
        for isolation, names in shared.items():
            self.slots[isolation] = Slots(isolation, config.slots(isolation), names)
        for pool, chosen in config.pools.items():
            self.slots[pool] = Slots(pool, chosen.size, chosen.types)
        # Without a type it stays a worker that beats, reaps, and shows its slots.
        if not self.slots:
            self.slots["async"] = Slots("async", config.slots("async"), ())
        self._by_type = {name: slots for slots in self.slots.values() for name in slots.types}
        # By claim, not by task: after a lost lease the next attempt may begin here before the last one has stopped.
        self.runs: dict[tuple[int, int], Run] = {}
        self.running = asyncio.Event()  # set while there are runs: an idle worker's loops sleep

    def __iter__(self) -> Iterator[Slots]:
        return iter(self.slots.values())

    def of(self, task_type: str) -> Slots:
        return self._by_type[task_type]

    @property
    def size(self) -> int:
        return sum(slots.size for slots in self)

    @property
    def prefetched(self) -> list[Claimed]:
        """Claimed tasks that have not started."""
        return list(chain.from_iterable(slots.prefetched for slots in self))

    def begin(self, run: Run) -> None:
        self.runs[run.claimed.seq, run.claimed.attempt] = run
        self.of(run.claimed.task_type).running += 1
        self.running.set()

    def end(self, run: Run, seconds: float) -> None:
        del self.runs[run.claimed.seq, run.claimed.attempt]
        slots = self.of(run.claimed.task_type)
        slots.running -= 1
        slots.learn(seconds)
        if not self.runs:
            self.running.clear()

    def add(self, tasks: Iterable[Claimed]) -> None:
        for each in tasks:
            self.of(each.task_type).prefetched.append(each)
        for slots in self:
            slots.wake_runners()

    def remove(self, task: Claimed) -> None:
        self.of(task.task_type).prefetched.remove(task)

    def drop_prefetched(self) -> list[Claimed]:
        """Remove and return the unstarted tasks."""
        dropped = self.prefetched
        for slots in self:
            slots.prefetched.clear()
        return dropped

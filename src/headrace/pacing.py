"""When to look at what is waited for: often while it is young or has just changed, seldom when it is old.

All waits of a process share one statement a look.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

T = TypeVar("T")

# Of the length of a wait so far: the longest time until its next look.
_MAX_DELAY_SHARE = 0.05


@dataclass(slots=True)
class _Turn:
    since: float  # monotonic: when the wait began or a change was seen
    due: float


class Pacer(Generic[T]):
    """Things that are waited for, and when each is looked at next: from ``first`` to ``last`` after the last look."""

    def __init__(self, *, first: timedelta, last: timedelta) -> None:
        self._last_s = last.total_seconds()
        self._first_s = min(first.total_seconds(), self._last_s)
        self._turns: dict[T, _Turn] = {}
        self._woken = asyncio.Event()

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._turns))

    @contextmanager
    def watched(self, item: T) -> Iterator[None]:
        """Look at this, at once and then until the block ends."""
        now = time.monotonic()
        self._turns[item] = _Turn(now, now)
        self._woken.set()
        try:
            yield
        finally:
            self.discard(item)

    def discard(self, item: T) -> None:
        """No more looks at this."""
        self._turns.pop(item, None)
        self._woken.set()

    def touch(self, item: T) -> None:
        """It has changed, and may change again soon."""
        if (turn := self._turns.get(item)) is not None:
            turn.since = time.monotonic()
            turn.due = turn.since + self._first_s

    async def next_due(self) -> list[T]:
        """Wait until something is due, and return all that is due about now; empty when nothing is waited for."""
        while self._turns:
            now = time.monotonic()
            earliest = min(turn.due for turn in self._turns.values())
            if earliest <= now:
                return self._take(now)
            self._woken.clear()
            try:
                async with asyncio.timeout(earliest - now):
                    await self._woken.wait()
            except TimeoutError:
                continue
        return []

    async def wait_for_any(self) -> None:
        """Wait until something is waited for."""
        while not self._turns:
            self._woken.clear()
            await self._woken.wait()

    def _take(self, now: float) -> list[T]:
        taken = []
        for item, turn in self._turns.items():
            pause = min(self._last_s, max(self._first_s, (now - turn.since) * _MAX_DELAY_SHARE))
            if turn.due <= now + pause / 2:  # those that are nearly due come along
                turn.due = now + pause
                taken.append(item)
        return taken

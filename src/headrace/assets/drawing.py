"""Who may have slides drawn, and when."""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headrace.assets.errors import DrawingBusy

_TRY_AGAIN_S, _MOST_FAILED = 600.0, 1000
_MOST_DECKS, _MOST_OF_ONE = 20, 4  # that are drawn or wait for it; and of one user


class Drawing:
    """Slides are drawn one deck at a time, which takes most of a core; what could not be is left for a while."""

    def __init__(self) -> None:
        self._one = asyncio.Semaphore()
        self._waiting: Counter[str] = Counter()
        self._failed: OrderedDict[str, float] = OrderedDict()

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait for the turn of the deck that is kept under ``name``; ``DrawingBusy`` if too many wait, or too many of
        one user."""
        if name not in self._waiting:
            of_one = sum(_owner(each) == _owner(name) for each in self._waiting)
            if len(self._waiting) >= _MOST_DECKS or of_one >= _MOST_OF_ONE:
                raise DrawingBusy
        self._waiting[name] += 1
        try:
            async with self._one:
                yield
        finally:
            self._waiting[name] -= 1
            if self._waiting[name] == 0:
                del self._waiting[name]

    def has_failed(self, digest: str) -> bool:
        return time.monotonic() < self._failed.get(digest, 0.0)

    def note_failed(self, digest: str) -> None:
        self._failed[digest] = time.monotonic() + _TRY_AGAIN_S
        while len(self._failed) > _MOST_FAILED:
            self._failed.popitem(last=False)


def _owner(name: str) -> str:
    """``preview/USER/…``"""
    return name.split("/")[1]

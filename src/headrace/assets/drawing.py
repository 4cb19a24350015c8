"""Turns at drawing slides."""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from headrace.assets.errors import DrawingBusy
from headrace.assets.fair_queue import FairQueue
from headrace.assets.inspection.errors import InspectionCrashed, InspectionMemory, InspectionTimeout

RETRY_FAILED_AFTER_SECONDS, MAX_FAILED = 600.0, 1000
MAX_WAIT = timedelta(seconds=10)
MAX_DECKS_PER_USER = 4  # that are drawn or wait for it


class Drawing:
    """Slides are drawn one deck at a time, which takes most of a core, in rotation between users; a deck that could not
    be drawn is not tried again for a while."""

    def __init__(self, *, max_wait: timedelta = MAX_WAIT) -> None:
        self._turns = FairQueue(1, max_wait=max_wait, busy=lambda: DrawingBusy(retry_after=max_wait))
        self._locks: dict[str, asyncio.Lock] = {}
        self._requests: Counter[str] = Counter()  # for each deck that is drawn or waits
        self._failed: OrderedDict[str, float] = OrderedDict()

    @asynccontextmanager
    async def deck(self, name: str) -> AsyncIterator[None]:
        """One request at a time for the deck that is kept under ``name``: the first draws it, the others wait for that.
        ``DrawingBusy`` if too many decks of its user wait."""
        owner = owner_of(name)
        if name not in self._locks:
            if sum(owner_of(each) == owner for each in self._locks) >= MAX_DECKS_PER_USER:
                raise DrawingBusy(retry_after=MAX_WAIT)
            self._locks[name] = asyncio.Lock()
        self._requests[name] += 1
        try:
            async with self._locks[name]:
                yield
        finally:
            self._requests[name] -= 1
            if self._requests[name] == 0:
                del self._requests[name], self._locks[name]

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait for the turn of a deck; ``DrawingBusy`` if it does not come soon."""
        async with self._turns.turn(owner_of(name)):
            yield

    @asynccontextmanager
    async def attempt(self, what: str) -> AsyncIterator[None]:
        """Draw something; what took all the time or memory it may have is refused for a while without another try."""
        if self.has_failed(what):
            raise InspectionTimeout
        try:
            yield
        except (InspectionTimeout, InspectionMemory, InspectionCrashed):
            self.note_failed(what)
            raise

    def has_failed(self, digest: str) -> bool:
        return time.monotonic() < self._failed.get(digest, 0.0)

    def note_failed(self, digest: str) -> None:
        self._failed[digest] = time.monotonic() + RETRY_FAILED_AFTER_SECONDS
        while len(self._failed) > MAX_FAILED:
            self._failed.popitem(last=False)


def owner_of(name: str) -> str:
    """Whose object this is, by its name: ``preview/USER/…``."""
    return name.split("/")[1]

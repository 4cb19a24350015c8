"""Turns at a scarce resource, such as child processes: fair between users.

Each user has one turn at a time, and users are served in rotation: a user with a hundred requests delays another by
one request, not by a hundred. No request waits longer than ``max_wait``.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from headrace.errors import HeadraceError

MAX_WAITING_PER_USER = 50


class FairQueue:
    """``slots`` turns at once. ``busy`` makes the error for a wait of ``max_wait``, or too many waiting requests.
    Belongs to the loop it is first used on."""

    def __init__(self, slots: int, *, max_wait: timedelta, busy: Callable[[], HeadraceError]) -> None:
        self._free = slots
        self._max_wait = max_wait
        self._busy = busy
        self._active: set[object] = set()
        self._waiting: OrderedDict[object, deque[asyncio.Future[None]]] = OrderedDict()  # in the order of rotation

    @asynccontextmanager
    async def turn(self, owner: str | None) -> AsyncIterator[None]:
        """Wait for a turn of this user; without one, for any."""
        key: object = object() if owner is None else owner
        await self._wait(key)
        try:
            yield
        finally:
            self._active.discard(key)
            self._free += 1
            self._serve()

    async def _wait(self, key: object) -> None:
        queue = self._waiting.setdefault(key, deque())
        if len(queue) >= MAX_WAITING_PER_USER:
            raise self._busy()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._serve()
        try:
            async with asyncio.timeout(self._max_wait.total_seconds()):
                await turn
        except BaseException as exc:
            if turn.done() and not turn.cancelled():  # served in the same instant
                self._active.discard(key)
                self._free += 1
            else:
                self._drop(key, turn)
            self._serve()
            if isinstance(exc, TimeoutError):
                raise self._busy() from None
            raise

    def _drop(self, key: object, turn: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(key)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[key]

    def _serve(self) -> None:
        """Hand out the free turns, to users in rotation."""
        while self._free > 0:
            key = next((each for each in self._waiting if each not in self._active), None)
            if key is None:
                return
            queue = self._waiting[key]
            turn = queue.popleft()
            if queue:
                self._waiting.move_to_end(key)
            else:
                del self._waiting[key]
            if turn.done():  # canceled just now
                continue
            self._free -= 1
            self._active.add(key)
            turn.set_result(None)

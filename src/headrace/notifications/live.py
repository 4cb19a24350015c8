"""Notifications as they come: one listener for all streams of a process, woken by NOTIFY, right by looking alone.

A stream holds no connection. It is woken with its user's id, reads what is new, and goes back to waiting; with every
heartbeat it looks by itself, for a note that was lost.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from headrace import logs
from headrace.database import Database
from headrace.errors import HeadraceError
from headrace.notifications import store
from headrace.notifications.model import Notification
from headrace.tasks.live import TooManyStreams

log = logs.get(__name__)

_AT_ONCE = 100
# Two relays commit in another order than they drew numbers in: so far back a stream looks for what it has not told.
_WINDOW = 1000

MaySee = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class InboxConfig:
    heartbeat: timedelta = timedelta(seconds=10)
    longest: timedelta = timedelta(minutes=15)
    most: int = 1000
    most_per_user: int = 20


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing new."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """Whoever opened the stream may no longer see it; nothing follows."""


@dataclass(eq=False, slots=True)
class _Stream:
    user_id: str
    last: int
    told: set[int] = field(default_factory=set)
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Inbox:
    """The streams of one process; ``open_inbox`` makes it."""

    def __init__(self, db: Database, config: InboxConfig | None = None) -> None:
        self._db = db
        self._config = config or InboxConfig()
        self._streams: set[_Stream] = set()
        self._stopped = False

    def stop(self) -> None:
        """End all streams: a server that shuts down need not wait for them."""
        self._stopped = True
        for stream in self._streams:
            stream.woken.set()

    async def run(self) -> None:
        async with aclosing(self._db.listen(store.CHANNEL)) as notes:
            async for note in notes:
                for stream in self._streams:
                    if note.resumed or stream.user_id == note.payload:
                        stream.woken.set()

    def check_room(self, user_id: str) -> None:
        own = sum(stream.user_id == user_id for stream in self._streams)
        if len(self._streams) >= self._config.most or own >= self._config.most_per_user:
            raise TooManyStreams(retry_after=self._config.heartbeat)

    async def follow(
        self, user_id: str, *, after: int | None, may_see: MaySee
    ) -> AsyncGenerator[Notification | Heartbeat | Revoked, None]:
        """What comes from now on, or after the one that was seen last."""
        every = self._config.heartbeat.total_seconds()
        ends_at = time.monotonic() + self._config.longest.total_seconds()
        check_at = time.monotonic() + every
        with await self._open(user_id, after) as stream:
            while not self._stopped and time.monotonic() < ends_at:
                stream.woken.clear()
                if time.monotonic() >= check_at:
                    if not await may_see():
                        yield Revoked()
                        return
                    check_at = time.monotonic() + every
                for notification in await self._news(stream):
                    yield notification
                try:
                    async with asyncio.timeout(every):
                        await stream.woken.wait()
                except TimeoutError:
                    yield Heartbeat()

    async def _open(self, user_id: str, after: int | None) -> "_Opened":
        async with self._db.transaction(readonly=True) as tx:
            last = await store.newest(tx, user_id) if after is None else after
            # What it was told before, or was there before: only what appears among it later is new.
            known = await store.list_after(tx, user_id, last - _WINDOW, limit=_WINDOW)
        told = {each.id for each in known if each.id <= last}
        return _Opened(self._streams, _Stream(user_id, last, told))

    async def _news(self, stream: _Stream) -> list[Notification]:
        try:
            async with self._db.transaction(readonly=True) as tx:
                most = _WINDOW + _AT_ONCE
                found = await store.list_after(tx, stream.user_id, stream.last - _WINDOW, limit=most)
        except HeadraceError as exc:  # the next look finds the same
            log.warning("inbox.unread", error=exc.code)
            return []
        news = [each for each in found if each.id not in stream.told]
        stream.told.update(each.id for each in news)
        stream.last = max([stream.last, *(each.id for each in news)])
        stream.told = {number for number in stream.told if number > stream.last - _WINDOW}
        if len(found) == most:
            stream.woken.set()  # there is more: look again at once
        return news


@dataclass(frozen=True, slots=True)
class _Opened:
    streams: set[_Stream]
    stream: _Stream

    def __enter__(self) -> _Stream:
        self.streams.add(self.stream)
        return self.stream

    def __exit__(self, *_: object) -> None:
        self.streams.discard(self.stream)


@asynccontextmanager
async def open_inbox(db: Database, config: InboxConfig | None = None) -> AsyncIterator[Inbox]:
    inbox = Inbox(db, config)
    listening = asyncio.create_task(inbox.run())
    try:
        yield inbox
    finally:
        inbox.stop()
        listening.cancel()
        await asyncio.wait({listening})

"""Notifications as they come: one listener for all streams of a process, woken by NOTIFY, right by looking alone.

A stream holds no connection. It is woken with its user's id, reads what is new, and goes back to waiting; with every
heartbeat it looks by itself, for a note that was lost.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from headrace import logs
from headrace.database import Database
from headrace.edge.streams import Heartbeat, MaySee, Revoked, StreamLimits, stream
from headrace.errors import HeadraceError
from headrace.notifications import store
from headrace.notifications.model import Notification

log = logs.get(__name__)

_AT_ONCE = 100
# Two relays commit in another order than they drew numbers in: so far back a stream looks for what it has not told.
_WINDOW = 1000


@dataclass(eq=False, slots=True)
class _Stream:
    user_id: str
    last: int
    told: set[int] = field(default_factory=set)
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Inbox:
    """The streams of one process; ``open_inbox`` makes it."""

    def __init__(self, db: Database, limits: StreamLimits | None = None) -> None:
        self._db = db
        self._limits = limits or StreamLimits()
        self._streams: set[_Stream] = set()
        self._stopped = False

    def stop(self) -> None:
        """End all streams: a server that shuts down need not wait for them."""
        self._stopped = True
        for each in self._streams:
            each.woken.set()

    async def run(self) -> None:
        async with aclosing(self._db.listen(store.CHANNEL)) as notes:
            async for note in notes:
                for each in self._streams:
                    if note.resumed or each.user_id == note.payload:
                        each.woken.set()

    def check_room(self, user_id: str) -> None:
        self._limits.check_room((each.user_id for each in self._streams), user_id)

    async def follow(
        self, user_id: str, *, after: int | None, may_see: MaySee
    ) -> AsyncGenerator[Notification | Heartbeat | Revoked, None]:
        """What comes from now on, or after the one that was seen last."""
        with await self._open(user_id, after) as mine:
            news = stream(
                lambda: self._news(mine),
                woken=mine.woken,
                limits=self._limits,
                is_stopped=lambda: self._stopped,
                may_see=may_see,
            )
            async with aclosing(news):
                async for each in news:
                    yield each

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
async def open_inbox(db: Database, limits: StreamLimits | None = None) -> AsyncIterator[Inbox]:
    inbox = Inbox(db, limits)
    listening = asyncio.create_task(inbox.run())
    try:
        yield inbox
    finally:
        inbox.stop()
        listening.cancel()
        await asyncio.wait({listening})

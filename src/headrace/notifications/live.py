"""Live streams of notifications: one listener for all streams of a process, woken by NOTIFY, correct by polling.

A stream holds no database connection. It is woken by its user's id, reads new rows, and waits again; at every heartbeat
it polls as well, in case a NOTIFY was lost.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from headrace.database import Database
from headrace.edge.streams import Heartbeat, MaySee, Revoked, StreamLimits, Streams
from headrace.notifications import store
from headrace.notifications.model import Notification

_BATCH_SIZE = 100
# Relays may commit in another order than that of their ids: a stream rereads this many ids for unsent rows.
_LATE_COMMIT_WINDOW = 1000


@dataclass(eq=False, slots=True)
class _Stream:
    user_id: str
    last: int | None  # None until the newest has been read
    shown: set[int] | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Inbox:
    """The streams of one process, made by ``open_inbox``."""

    def __init__(self, db: Database, limits: StreamLimits | None = None) -> None:
        self._db = db
        self._streams: Streams[_Stream] = Streams("inbox", limits or StreamLimits())
        self.stop = self._streams.stop
        self.check_room = self._streams.check_room

    async def run(self) -> None:
        async with aclosing(self._db.listen(store.CHANNEL)) as notes:
            async for note in notes:
                for each in self._streams:
                    if note.resumed or each.user_id == note.payload:
                        each.woken.set()

    async def follow(
        self, user_id: str, *, after: int | None, may_see: MaySee
    ) -> AsyncGenerator[Notification | Heartbeat | Revoked, None]:
        """Stream notifications from now on, or after the last one seen."""
        with self._streams.opened(_Stream(user_id, after)) as mine:
            news = self._streams.news(mine, partial(self._news, mine), may_see=may_see)
            async with aclosing(news):
                async for each in news:
                    yield each

    async def _news(self, stream: _Stream) -> list[Notification]:
        most = _LATE_COMMIT_WINDOW + _BATCH_SIZE
        async with self._db.transaction(readonly=True) as tx:
            last = await store.newest(tx, stream.user_id) if stream.last is None else stream.last
            found = await store.list_after(tx, stream.user_id, last - _LATE_COMMIT_WINDOW, limit=most)
        # At first, ids up to the last one were sent or existed before: only ids that appear among them later are new.
        shown = {each.id for each in found if each.id <= last} if stream.shown is None else stream.shown
        news = [each for each in found if each.id not in shown]
        stream.last = max([last, *(each.id for each in news)])
        stream.shown = {
            number for number in shown.union(each.id for each in news) if number > stream.last - _LATE_COMMIT_WINDOW
        }
        if len(found) == most:
            stream.woken.set()  # more rows remain: poll again at once
        return news


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

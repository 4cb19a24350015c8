"""Live streams of notifications: one listener for all streams of a process, woken by NOTIFY, correct by polling.

A stream holds no database connection. It is woken by its user's id, reads new rows, and waits again; at every heartbeat
it polls as well, in case a NOTIFY was lost.
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

_BATCH_SIZE = 100
# Relays may commit in another order than that of their ids: a stream rereads this many ids for unsent rows.
_LATE_COMMIT_WINDOW = 1000


@dataclass(eq=False, slots=True)
class _Stream:
    user_id: str
    last: int
    sent_ids: set[int] = field(default_factory=set)
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Inbox:
    """The streams of one process, made by ``open_inbox``."""

    def __init__(self, db: Database, limits: StreamLimits | None = None) -> None:
        self._db = db
        self._limits = limits or StreamLimits()
        self._streams: set[_Stream] = set()
        self._stopped = False

    def stop(self) -> None:
        """End all streams, so that a shutdown need not wait for them."""
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
        """Stream notifications from now on, or after the last one seen."""
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
            # Ids that were sent or existed before: only ids that appear among them later are new.
            known = await store.list_after(tx, user_id, last - _LATE_COMMIT_WINDOW, limit=_LATE_COMMIT_WINDOW)
        sent_ids = {each.id for each in known if each.id <= last}
        return _Opened(self._streams, _Stream(user_id, last, sent_ids))

    async def _news(self, stream: _Stream) -> list[Notification]:
        try:
            async with self._db.transaction(readonly=True) as tx:
                most = _LATE_COMMIT_WINDOW + _BATCH_SIZE
                found = await store.list_after(tx, stream.user_id, stream.last - _LATE_COMMIT_WINDOW, limit=most)
        except HeadraceError as exc:  # the next poll finds them
            log.warning("inbox.unread", error=exc.code)
            return []
        news = [each for each in found if each.id not in stream.sent_ids]
        stream.sent_ids.update(each.id for each in news)
        stream.last = max([stream.last, *(each.id for each in news)])
        stream.sent_ids = {number for number in stream.sent_ids if number > stream.last - _LATE_COMMIT_WINDOW}
        if len(found) == most:
            stream.woken.set()  # more rows remain: poll again at once
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

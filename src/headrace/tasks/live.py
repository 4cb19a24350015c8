"""Following tasks while they run: one query for all watchers that are due, often for those whose tasks are young.

A stream holds no connection. One loop reads the positions of watched tasks in one statement; a stream whose task
has moved reads the new part and waits again. The engine's writes cost nothing more for it, and it works behind
a pooler, where LISTEN does not.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import partial

from headrace.database import Database, Tx
from headrace.edge.streams import Heartbeat, MaySee, Revoked, StreamLimits, Streams
from headrace.loops import FailuresLogged
from headrace.pacing import Pacer
from headrace.tasks.model import Task
from headrace.tasks.store import tasks as store
from headrace.tasks.store import watching
from headrace.tasks.store.tasks import LogLine
from headrace.tasks.store.watching import Position

_LINES = 200
EVENT_ID = r"^[0-9]{1,10}\.[0-9]{1,10}\.[0-9]{1,18}$"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchConfig(StreamLimits):
    soonest: timedelta = timedelta(milliseconds=10)  # between two looks at a task that is young or has just changed
    every: timedelta = timedelta(milliseconds=250)  # between two at any other
    most_per_user: int = 50
    reads_at_once: int = 4


class Kind(StrEnum):
    TASK = "task"  # the task as it is now
    LOG = "log"  # a line of its log
    END = "end"  # the task is over, or gone; nothing follows
    REVOKED = "revoked"  # the user may no longer see it; nothing follows
    HEARTBEAT = "heartbeat"  # nothing new


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell a watcher; ``position`` is how far it has seen the task with this."""

    kind: Kind
    position: Position
    task: Task | None = None
    line: LogLine | None = None


def event_id(position: Position) -> str:
    return f"{position.version}.{position.attempt}.{position.log_id}"


def position_of(text: str) -> Position | None:
    """The position of an event's id; None for a malformed id."""
    return Position(*map(int, text.split("."))) if re.fullmatch(EVENT_ID, text) else None


@dataclass(eq=False, slots=True)
class _Watcher:
    task_id: str
    user_id: str
    seen: Position
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Watch:
    """The streams of one process; ``open_watch`` makes it."""

    def __init__(self, db: Database, config: WatchConfig) -> None:
        self._db = db
        self._config = config
        self._watchers: Streams[_Watcher] = Streams("watch", config)
        self._pacer: Pacer[_Watcher] = Pacer(first=config.soonest, last=config.every)
        self._reading = asyncio.Semaphore(config.reads_at_once)
        self.stop = self._watchers.stop
        self.check_room = self._watchers.check_room

    @property
    def streams(self) -> int:
        return len(self._watchers)

    async def run(self) -> None:
        """Look while streams are open, for at most a fifth of the time. A failure is logged and delays the streams."""
        while True:
            await self._pacer.wait_for_any()
            if not (due := await self._pacer.next_due()):
                continue
            started = time.monotonic()
            with FailuresLogged("watch.failed", streams=len(self._watchers)):
                await self.run_once(due)
            await asyncio.sleep(4 * (time.monotonic() - started))

    async def run_once(self, due: Sequence[_Watcher] | None = None) -> int:
        """Look where these watched tasks stand, or all, and wake the streams of those that moved; gives how many."""
        watchers = list(self._watchers) if due is None else due
        positions = await watching.find_positions(self._db, sorted({watcher.task_id for watcher in watchers}))
        moved = [each for each in watchers if positions.get(each.task_id) != each.seen]
        for watcher in moved:
            watcher.woken.set()
            self._pacer.touch(watcher)
        return len(moved)

    async def follow(
        self,
        task_id: str,
        *,
        user_id: str,
        since: Position | None = None,
        lines_after: int | None = None,
        may_see: MaySee | None = None,
    ) -> AsyncGenerator[Event, None]:
        """The events of a task from now on, until it is over; the caller has checked that the user may see it.

        ``since`` is where an earlier stream ended: then only later events come. Otherwise the current state comes
        first, with the lines after ``lines_after`` (0: all of them, None: only later ones). ``may_see`` is called
        again at every heartbeat, also while there is so much news that none is sent.
        """
        seen = since or Position(-1, -1, -1 if lines_after is None else lines_after)
        with self._watchers.opened(_Watcher(task_id, user_id, seen)) as watcher, self._pacer.watched(watcher):
            check = None if may_see is None else partial(self._ask, may_see)
            news = self._watchers.news(watcher, partial(self._news, watcher), may_see=check)
            async with aclosing(news):
                async for each in news:
                    match each:
                        case Heartbeat():
                            yield Event(Kind.HEARTBEAT, watcher.seen)
                        case Revoked():
                            yield Event(Kind.REVOKED, watcher.seen)
                        case Event():
                            watcher.seen = each.position
                            yield each
                            if each.kind is Kind.END:
                                return

    async def _ask(self, may_see: MaySee) -> bool:
        async with self._reading:
            return await may_see()

    async def _news(self, watcher: _Watcher) -> list[Event]:
        """The news since the watcher's last read, in order."""
        task, lines = await self._read(watcher)
        if task is None:
            return [Event(Kind.END, watcher.seen)]
        if len(lines) >= _LINES:
            watcher.woken.set()  # there may be more where these came from
        events = []
        position = watcher.seen._replace(version=task.version, attempt=task.attempt)
        if position != watcher.seen:
            events.append(Event(Kind.TASK, position, task=task))
        for line in lines:
            position = position._replace(log_id=line.id)
            events.append(Event(Kind.LOG, position, line=line))
        if task.status.is_over and len(lines) < _LINES:
            events.append(Event(Kind.END, position, task=task))
        return events

    async def _read(self, watcher: _Watcher) -> tuple[Task | None, list[LogLine]]:
        # One snapshot for both: the last line is committed with the end, so a reader of the end sees all lines.
        async with self._reading, self._db.transaction(isolation="repeatable_read", readonly=True) as tx:
            task = await store.find_task(tx, watcher.task_id)
            if watcher.seen.log_id < 0:
                watcher.seen = watcher.seen._replace(log_id=await store.last_log_id(tx, watcher.task_id))
            lines = await store.list_logs(tx, watcher.task_id, after=watcher.seen.log_id, limit=_LINES)
        return task, lines


async def nothing_left(tx: Tx, task: Task, since: Position | None) -> bool:
    """Whether a reader at this position has seen everything that will come."""
    if since is None or not task.status.is_over:
        return False
    return since == Position(task.version, task.attempt, await store.last_log_id(tx, task.id))


@asynccontextmanager
async def open_watch(db: Database, config: WatchConfig | None = None) -> AsyncIterator[Watch]:
    """The streams of a process, for as long as it serves them."""
    watch = Watch(db, config or WatchConfig())
    async with asyncio.TaskGroup() as group:
        updates = group.create_task(watch.run(), name="watch tasks")
        try:
            yield watch
        finally:
            watch.stop()
            updates.cancel()

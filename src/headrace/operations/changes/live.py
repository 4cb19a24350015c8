"""Telling of changes: one look at the database a second for all who look on in a process, and none while nobody does.

A stream holds no connection. It tells what has changed since it was opened; whoever comes back after a break is told to
read everything again, for nobody has kept what happened meanwhile.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from headrace import logs
from headrace.database import Database
from headrace.errors import HeadraceError
from headrace.operations.changes import store
from headrace.operations.changes.model import Kind, News
from headrace.schedules.store.executions import list_of_tasks
from headrace.tasks.live import TooManyStreams
from headrace.tasks.store.tasks import list_named

log = logs.get(__name__)

MaySee = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class ChangesConfig:
    every: timedelta = timedelta(seconds=1)
    # A row's time is that of the beginning of its transaction: so far back one looks for those that committed late.
    window: timedelta = timedelta(seconds=20)
    heartbeat: timedelta = timedelta(seconds=10)
    longest: timedelta = timedelta(minutes=15)
    # Of each status. Where more move, those who look on read their lists again instead.
    rows: int = 100
    most: int = 200
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
    untold: list[News] = field(default_factory=list)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, news: News) -> None:
        # One who reads too slowly for it is told to read again.
        self.untold = [*self.untold, news] if len(self.untold) < _UNTOLD else [EVERYTHING]
        self.woken.set()


_UNTOLD = 30
EVERYTHING = News(frozenset(Kind))


class Changes:
    """The streams of one process; ``open_changes`` makes it."""

    def __init__(self, db: Database, config: ChangesConfig | None = None) -> None:
        self._db = db
        self._config = config or ChangesConfig()
        self._streams: set[_Stream] = set()
        self._watched = asyncio.Event()
        self._stopped = False
        self._writes: dict[str, int] | None = None
        self._seen: set[store.Moved] = set()

    def stop(self) -> None:
        """End all streams: a server that shuts down need not wait for them."""
        self._stopped = True
        for stream in self._streams:
            stream.woken.set()

    async def run(self) -> None:
        while True:
            if not self._watched.is_set():
                self._writes = None  # what happened while nobody looked on is not news
                await self._watched.wait()
            started = time.monotonic()
            try:
                await self.run_once()
            except HeadraceError as exc:
                log.warning("changes.failed", error=exc.code)
            except Exception:  # whoever looks on waits a little longer; the API must not go down for it
                log.exception("changes.failed")
            # At most a fifth of the time, however slow the database is.
            await asyncio.sleep(max(self._config.every.total_seconds(), 4 * (time.monotonic() - started)))

    async def run_once(self) -> News:
        """Look what has changed since the last look, and tell all streams."""
        window = self._config.window
        writes = await store.count_writes(self._db, within=window)
        moved = set(await store.list_moved(self._db, within=window, limit=self._config.rows))
        news = News()
        if self._writes is not None:
            new = [each.task_id for each in moved - self._seen]
            news = await self._read(store.kinds_of(self._writes, writes), new)
        # Only now: what could not be read is still news at the next look.
        self._writes, self._seen = writes, moved
        if news:
            for stream in self._streams:
                stream.tell(news)
        return news

    async def _read(self, kinds: frozenset[Kind], task_ids: list[str]) -> News:
        if len(task_ids) >= self._config.rows:
            return News(kinds | {Kind.TASKS, Kind.RUNS})
        if not task_ids:
            return News(kinds)
        async with self._db.transaction(readonly=True) as tx:
            tasks = await list_named(tx, task_ids)
            runs = await list_of_tasks(tx, [task.id for task in tasks.values() if task.schedule_uid is not None])
        if len(tasks) < len(set(task_ids)):  # deleted: a list that shows them must be read again
            kinds |= {Kind.TASKS, Kind.RUNS}
        newest_first = sorted(tasks.values(), key=lambda task: (task.created_at, task.id), reverse=True)
        return News(kinds, newest_first, sorted(runs, key=lambda run: run.created_at, reverse=True))

    def check_room(self, user_id: str) -> None:
        own = sum(stream.user_id == user_id for stream in self._streams)
        if len(self._streams) >= self._config.most or own >= self._config.most_per_user:
            raise TooManyStreams(retry_after=self._config.heartbeat)

    async def follow(
        self, user_id: str, *, again: bool, may_see: MaySee
    ) -> AsyncGenerator[News | Heartbeat | Revoked, None]:
        """What changes from now on; whoever was here before is first told to read everything again."""
        every = self._config.heartbeat.total_seconds()
        ends_at = time.monotonic() + self._config.longest.total_seconds()
        check_at = time.monotonic() + every
        stream = _Stream(user_id)
        self._streams.add(stream)
        self._watched.set()
        try:
            yield EVERYTHING if again else News()
            while not self._stopped and time.monotonic() < ends_at:
                stream.woken.clear()
                allowed: bool | None = True
                if time.monotonic() >= check_at:
                    allowed = await _ask(may_see)
                    if allowed is False:
                        yield Revoked()
                        return
                    if allowed:
                        check_at = time.monotonic() + every
                if allowed:  # while nobody can tell, nothing is shown
                    untold, stream.untold = stream.untold, []
                    for news in untold:
                        yield news
                try:
                    async with asyncio.timeout(every):
                        await stream.woken.wait()
                except TimeoutError:
                    yield Heartbeat()
        finally:
            self._streams.discard(stream)
            if not self._streams:
                self._watched.clear()


async def _ask(may_see: MaySee) -> bool | None:
    """Whether they may still look on; None when nobody can tell."""
    try:
        return await may_see()
    except HeadraceError as exc:
        log.warning("changes.unasked", error=exc.code)
    except Exception:
        log.exception("changes.unasked")
    return None


@asynccontextmanager
async def open_changes(db: Database, config: ChangesConfig | None = None) -> AsyncIterator[Changes]:
    """The streams of a process, for as long as it serves them."""
    changes = Changes(db, config)
    async with asyncio.TaskGroup() as group:
        looking = group.create_task(changes.run(), name="watch changes")
        try:
            yield changes
        finally:
            changes.stop()
            looking.cancel()

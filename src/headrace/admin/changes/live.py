"""The live stream of changes: one query a second for all watchers of a process, and none without watchers.

A stream holds no connection. It reports changes since it was opened; a client that reconnects is asked to read
everything again, because the changes in between are not kept.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from headrace.admin.changes import store
from headrace.admin.changes.model import Kind, News
from headrace.database import Database
from headrace.edge.streams import Heartbeat, MaySee, Revoked, StreamLimits, Streams
from headrace.schedules.store.executions import list_of_tasks
from headrace.tasks.store.tasks import list_named


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesConfig(StreamLimits):
    every: timedelta = timedelta(seconds=1)
    # A row's time is that of the beginning of its transaction: the query reaches this far back for late commits.
    window: timedelta = timedelta(seconds=20)
    # Of each status. Where more move, those who look on read their lists again instead.
    rows: int = 100
    most: int = 200


@dataclass(eq=False, slots=True)
class _Stream:
    user_id: str
    untold: list[News] = field(default_factory=list)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, news: News) -> None:
        # A watcher that reads too slowly for it is asked to read everything again.
        self.untold = [*self.untold, news] if len(self.untold) < _UNTOLD else [EVERYTHING]
        self.woken.set()

    async def take(self) -> list[News]:
        untold, self.untold = self.untold, []
        return untold


_UNTOLD = 30
EVERYTHING = News(frozenset(Kind))


class Changes:
    """The streams of one process; ``open_changes`` makes it."""

    def __init__(self, db: Database, config: ChangesConfig | None = None) -> None:
        self._db = db
        self._config = config or ChangesConfig()
        self._streams: Streams[_Stream] = Streams("changes", self._config)
        self._writes: dict[str, int] | None = None
        self._seen: set[store.Moved] = set()
        self.stop = self._streams.stop
        self.check_room = self._streams.check_room

    async def run(self) -> None:
        await self._streams.look_while_open(self.run_once, every=self._config.every, idle=self._forget)

    def _forget(self) -> None:
        self._writes = None  # changes while there is no stream are not news

    async def run_once(self) -> News:
        """Read the changes since the last round, and send them to all streams."""
        window = self._config.window
        writes = await store.count_writes(self._db, within=window)
        moved = set(await store.list_moved(self._db, within=window, limit=self._config.rows))
        news = News()
        if self._writes is not None:
            new = [each.task_id for each in moved - self._seen]
            news = await self._read(store.kinds_of(self._writes, writes), new)
        # Only now: what could not be read is still news in the next round.
        self._writes, self._seen = writes, moved
        if news:
            for each in self._streams:
                each.tell(news)
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

    async def follow(
        self, user_id: str, *, again: bool, may_see: MaySee
    ) -> AsyncGenerator[News | Heartbeat | Revoked, None]:
        """Changes from now on; a client that was here before is first asked to read everything again."""
        with self._streams.opened(_Stream(user_id)) as mine:
            yield EVERYTHING if again else News()
            async with aclosing(self._streams.news(mine, mine.take, may_see=may_see)) as news:
                async for each in news:
                    yield each


@asynccontextmanager
async def open_changes(db: Database, config: ChangesConfig | None = None) -> AsyncIterator[Changes]:
    """The streams of a process, for as long as it serves them."""
    changes = Changes(db, config)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(changes.run(), name="watch changes")
        try:
            yield changes
        finally:
            changes.stop()
            watching.cancel()

"""Values at hand: read once, forgotten when somebody changes them.

The table notifies with each change; whoever listens forgets that key. Behind a pooler notifications do not arrive:
there ``Database.listen`` says every second that some may have been missed, and everything is forgotten. A lost note
costs ``longest`` at the most.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

from headrace.configs import store
from headrace.configs.registry import ConfigKey
from headrace.database import Database, Note

T = TypeVar("T")

CHANNEL = "headrace_configs"
_MOST = 10_000

_Known = tuple[str, str | None, str | None]


class Configs:
    """The values that hold, for one process; ``open_configs`` makes it and keeps it fresh."""

    def __init__(self, db: Database, *, longest: timedelta = timedelta(minutes=1)) -> None:
        self._db = db
        self._longest = longest.total_seconds()
        self._known: OrderedDict[_Known, tuple[float, tuple[Any] | None]] = OrderedDict()
        self._changes = 0

    async def get(self, key: ConfigKey[T], *, user_id: str | None = None, tenant_id: str | None = None) -> T:
        """The value that holds for this user and tenant: the narrowest that is set and active, or the default."""
        target = (key.name, user_id, tenant_id)
        known = self._known.get(target)
        if known is not None and known[0] > time.monotonic():
            self._known.move_to_end(target)
            found = known[1]
        else:
            found = await self._read(target)
        return key.default if found is None else key.read(found[0])

    async def _read(self, target: _Known) -> tuple[Any] | None:
        name, user_id, tenant_id = target
        changes = self._changes
        async with self._db.transaction(readonly=True) as tx:
            found = await store.resolve(tx, name, user_id=user_id, tenant_id=tenant_id)
        # What was read while somebody changed it may be the old value, and the note has come already.
        if changes == self._changes:
            self._known[target] = (time.monotonic() + self._longest, found)
            self._known.move_to_end(target)
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        return found

    def forget(self, note: Note) -> None:
        """What a note says has changed."""
        self._changes += 1
        if note.resumed:
            self._known.clear()
            return
        for target in [target for target in self._known if target[0] == note.payload]:
            del self._known[target]

    async def run(self) -> None:
        """Listen for changes for ever."""
        async with aclosing(self._db.listen(CHANNEL)) as notes:
            async for note in notes:
                self.forget(note)


@asynccontextmanager
async def open_configs(db: Database, *, longest: timedelta = timedelta(minutes=1)) -> AsyncIterator[Configs]:
    """The configs of a process, for as long as it runs."""
    configs = Configs(db, longest=longest)
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(configs.run(), name="listen for configs")
        try:
            yield configs
        finally:
            listening.cancel()

"""A cache of config values, invalidated by changes.

The table notifies of each change, and listeners drop that key. Behind a pooler notifications do not arrive: there
``Database.listen`` reports every second that some may have been missed, and the whole cache is dropped. With a lost
notification a value is stale for at most ``longest``.
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
_MAX_CACHED_VALUES = 10_000

_Known = tuple[str, str | None, str | None]


class Configs:
    """The effective values in one process; opened and kept current by ``open_configs``."""

    def __init__(self, db: Database, *, longest: timedelta = timedelta(minutes=1)) -> None:
        self._db = db
        self._longest = longest.total_seconds()
        self._known: OrderedDict[_Known, tuple[float, tuple[Any] | None]] = OrderedDict()
        self._changes = 0

    async def get(self, key: ConfigKey[T], *, user_id: str | None = None, tenant_id: str | None = None) -> T:
        """The effective value for this user and tenant: the narrowest active one, or the default."""
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
        # A value read during a change may be the old one, although its notification has already arrived.
        if changes == self._changes:
            self._known[target] = (time.monotonic() + self._longest, found)
            self._known.move_to_end(target)
            if len(self._known) > _MAX_CACHED_VALUES:
                self._known.popitem(last=False)
        return found

    def forget(self, note: Note) -> None:
        """Drop the entries that a notification names."""
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
    """Open the configs of a process."""
    configs = Configs(db, longest=longest)
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(configs.run(), name="listen for configs")
        try:
            yield configs
        finally:
            listening.cancel()

"""Whether file storage works: at the start of a process, and while an API runs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from headrace import logs
from headrace.assembly.deployment import Notify
from headrace.assembly.files import files_storage
from headrace.figures import Figure
from headrace.loops import repeat
from headrace.settings import Settings
from headrace.storage import Storage, StorageConfig, StorageRefused, StorageUnreachable

log = logs.get(__name__)

_EVERY = timedelta(minutes=1)
SETTINGS = "HEADRACE_FILES_URL and HEADRACE_FILES_S3_…"


async def check_storage(chosen: Settings, *, notify: Notify) -> None:
    """Write, read and delete a probe object before a process starts to work.

    A refusal (no such bucket, a wrong key, a folder that is not writable) ends the start: ``StorageRefused``. After an
    outage the process starts anyway, as a running one continues: only files answer 503 until storage is back.
    """
    try:
        await probe(files_storage(chosen))
    except StorageRefused as exc:
        raise StorageRefused(f"{exc.operator_message} See {SETTINGS}.") from None
    except StorageUnreachable as exc:
        notify(f"{exc.operator_message} Starting without files: they answer 503 until storage is back.")


async def probe(config: StorageConfig) -> None:
    """Check storage that nothing else has opened."""
    storage = Storage(config)
    try:
        await storage.check()
    finally:
        await storage.close()


class StorageWatch:
    """Whether files could be stored and read at the last check, which is at most a minute and a half old.

    ``/readyz`` and ``/metrics`` read the stored result; their requests never reach the storage.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._reachable = True

    async def run_once(self) -> None:
        try:
            await self._storage.check()
        except StorageUnreachable as exc:
            if self._reachable:
                log.error("storage.unreachable", code=exc.code, reason=exc.operator_message)
            self._reachable = False
        else:
            if not self._reachable:
                log.info("storage.reachable_again")
            self._reachable = True

    def degraded(self) -> Sequence[str]:
        return () if self._reachable else ("storage",)

    def read_figures(self) -> Sequence[Figure]:
        text = "1 if this process could write, read and delete a probe object in file storage."
        return [Figure("headrace_storage_up", text, values={(): int(self._reachable)})]


@asynccontextmanager
async def watched(storage: Storage, *, every: timedelta = _EVERY) -> AsyncIterator[StorageWatch]:
    """Check the storage every so often while the block runs."""
    watch = StorageWatch(storage)
    checking = asyncio.create_task(repeat(watch.run_once, every, failed="storage.check_failed"))
    try:
        yield watch
    finally:
        checking.cancel()
        await asyncio.wait([checking])

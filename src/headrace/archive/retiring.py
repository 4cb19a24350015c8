"""A month leaves its table: detach → archive → verify → drop.

Each step is recorded in ``headrace.archives`` by the commit that does it, so that any process can continue a run that
was killed where it stopped. Nothing is dropped unless the file was read back from where it is stored, in
this very run, and holds exactly the rows that are about to go.

The application does it with its own rights: each step is a function of the owner's in the database, which refuses a
month that is still needed, or younger than ``headrace.retention_minimums``. The settings of this process cannot
change that.

The table itself is locked only while the catalog changes. PostgreSQL's DETACH … CONCURRENTLY is not for tables with a
default partition, so the lock is a real one; it is requested with a timeout of milliseconds, and again later if the
table is in use: other sessions never wait behind it for long.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import date, timedelta
from pathlib import Path

import asyncpg

from headrace import audit, ids, logs
from headrace.archive import parquet, store
from headrace.archive.config import LockConfig
from headrace.archive.errors import (
    ArchiveDamaged,
    ArchiveNotFound,
    MonthNeeded,
    MonthNotFound,
    PartitionBusy,
    RetiredElsewhere,
)
from headrace.archive.model import Archive, ArchiveState, MonthlyTable, Retired, monthly
from headrace.archive.sessions import Connection, session, try_lock
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import DatabaseConfig, Tx
from headrace.extras import load
from headrace.storage import ObjectNotFound, Storage

log = logs.get(__name__)

Step = Callable[[str], None]
"""Called after each step: for a progress line, and for tests that stop there."""


def _no_step(_: str) -> None:
    """Reports nothing."""


async def retire_month(
    config: DatabaseConfig,
    storage: Storage,
    table_name: str,
    month: date,
    *,
    who: Who,
    lock: LockConfig | None = None,
    write_again: bool = False,
    on_step: Step = _no_step,
) -> Retired:
    """Take a month out of its table and into the archive, from wherever an earlier run left it.

    Any number of processes may try at once: one does it, the others get ``RetiredElsewhere``. ``write_again`` replaces
    a file that is damaged while the rows are still here.
    """
    table = monthly(table_name)
    # Before anything is taken out, and in a thread: loading it the first time takes a while.
    await asyncio.to_thread(load, "pyarrow.parquet", extra="archive")
    async with session(config) as connection, _alone(config, connection, table):
        work = _Work(connection, storage, table, month, who, lock or LockConfig(), on_step)
        return await work.run(write_again=write_again)


@asynccontextmanager
async def _alone(config: DatabaseConfig, connection: Connection, table: MonthlyTable) -> AsyncIterator[None]:
    async with try_lock(config, connection, f"headrace.retire.{table.name}") as locked:
        if not locked:
            raise RetiredElsewhere(f"Another process is retiring months of {table.name} right now.")
        yield


class _Work:
    def __init__(
        self,
        connection: Connection,
        storage: Storage,
        table: MonthlyTable,
        month: date,
        who: Who,
        lock: LockConfig,
        on_step: Step,
    ) -> None:
        self._connection = connection
        self._tx = Tx(connection)
        self._storage = storage
        self._table = table
        self._month = month.replace(day=1)
        self._name = table.partition(month)
        self._who = who
        self._lock = lock
        self._step = on_step
        self._locked = timedelta(0)

    async def run(self, *, write_again: bool) -> Retired:
        archive = await self._find()
        if (
            archive is not None
            and archive.state is ArchiveState.DROPPED
            and await store.is_attached(self._tx, self._name)
        ):
            raise MonthNeeded(
                f"{self._name} is archived as {archive.id}, and was made again since: headrace.{self._name} stays. "
                "Move its rows elsewhere if it has some, and drop it."
            )
        if archive is None:
            if not await store.is_attached(self._tx, self._name):
                raise MonthNotFound(f"{self._table.name} has no month {self._month:%Y-%m}.")
            await self._storage.probe()
            archive = await self._detach()
        if write_again and archive.state is ArchiveState.ARCHIVED:
            await store.rewrite_month(self._tx, archive.id)
            archive = await self._recorded()
        if archive.state is ArchiveState.DETACHED:
            archive = await self._write(archive)
        if archive.state is ArchiveState.ARCHIVED:
            archive = await self._verify(archive)
            archive = await self._drop(archive)
        return Retired(archive, self._locked)

    async def _find(self) -> Archive | None:
        return await store.find_month(self._tx, self._table.name, self._month)

    async def _recorded(self) -> Archive:
        archive = await self._find()
        assert archive is not None
        return archive

    async def _detach(self) -> Archive:
        archive_id = ids.new("arc")

        async def detach(tx: Tx) -> timedelta:
            await audit.record(tx, self._who, Action.DISABLED, self._partition())
            return await store.detach_month(tx, archive_id, self._table, self._month, wait=self._lock.wait)

        await self._briefly(detach)
        self._step("detached")
        return await self._recorded()

    async def _write(self, archive: Archive) -> Archive:
        location = f"{self._table.name}/{self._name}.{archive.id}.parquet"
        with tempfile.TemporaryDirectory(prefix="headrace-archive-") as folder:
            file = Path(folder) / "month.parquet"
            summary = await parquet.write(self._connection, self._table, self._name, file)
            self._step("written")
            await self._storage.put(location, file)
        self._step("stored")
        async with self._connection.transaction():
            if await store.note_archived(self._tx, archive.id, summary):
                archive = await self._recorded()
                await audit.record(self._tx, self._who, Action.CREATED, _resource(archive), new=archive)
        self._step("archived")
        return archive

    async def _verify(self, archive: Archive) -> Archive:
        try:
            async with fetched(self._storage, archive) as file:
                difference = await parquet.find_difference(self._connection, self._table, self._name, file)
            if difference is not None:
                raise ArchiveDamaged(f"{archive.location} does not hold what {self._name} holds: {difference}.")
        except ArchiveDamaged as exc:
            again = f"headrace partitions retire {self._table.name} {self._month:%Y-%m} --write-again"
            raise ArchiveDamaged(
                f"{exc.message} The rows are still in the database: `{again}` writes it again."
            ) from exc
        if not await store.note_verified(self._tx, archive):
            raise ArchiveDamaged(f"{archive.location} was rewritten meanwhile.")
        self._step("verified")
        return await self._recorded()

    async def _drop(self, archive: Archive) -> Archive:
        async def unlink(tx: Tx) -> timedelta | None:
            return await store.unlink_month(tx, archive, wait=self._lock.wait)

        while await self._briefly(unlink) is not None:
            pass

        # It has no other users by now: removing its files may take long and holds up no session.
        async def drop(tx: Tx) -> None:
            await audit.record(tx, self._who, Action.DELETED, self._partition(), data={"archive": archive.id})
            await store.count_removed(tx, self._table.name, archive.row_count or 0)
            if not await store.drop_month(tx, archive, wait=self._lock.wait):
                raise ArchiveDamaged(f"{archive.location} was written again meanwhile.")

        await self._briefly(drop)
        self._step("dropped")
        return await self._recorded()

    async def _briefly(self, change: Callable[[Tx], Awaitable[timedelta | None]]) -> timedelta | None:
        """Change the catalog in one short transaction, again and again until the locks are free.

        ``change`` gives how long a table in use has been locked by then.
        """
        deadline = time.monotonic() + self._lock.patience.total_seconds()
        while True:
            try:
                return await self._try_to(change)
            except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as exc:
                self._locked = max(self._locked, self._lock.wait)
                if time.monotonic() > deadline:
                    raise PartitionBusy(f"{self._table.name} is in use without a pause; try again later.") from exc
                log.info("retention.waits", partition=self._name)
                await asyncio.sleep(self._lock.pause.total_seconds() * random.uniform(0.5, 1.5))  # noqa: S311

    async def _try_to(self, change: Callable[[Tx], Awaitable[timedelta | None]]) -> timedelta | None:
        async with self._connection.transaction():
            # Sessions that wait for us must not wait for a disk, too: if this commit is lost, all of it is.
            await self._connection.execute("SET LOCAL synchronous_commit = off")
            locked = await change(self._tx)
            committing = time.monotonic()
        if locked is not None:
            self._locked = max(self._locked, locked + timedelta(seconds=time.monotonic() - committing))
        return locked

    def _partition(self) -> Resource:
        return Resource(ResourceType.PARTITION, self._name, {"table": self._table.name})


def _resource(archive: Archive) -> Resource:
    return Resource(ResourceType.ARCHIVE, archive.id, {"name": archive.name})


async def fetch_file(storage: Storage, archive: Archive, path: Path) -> None:
    """Write the archive's file to ``path``; an error names the month if it is gone, or not the one that was written."""
    assert archive.location is not None
    try:
        digest = await storage.fetch(archive.location, path)
    except ObjectNotFound as exc:
        raise ArchiveNotFound(f"The file of {archive.name}, {archive.location}, is not in the archive.") from exc
    if digest != archive.sha256:
        raise ArchiveDamaged(
            f"{archive.location} is not the file that was written: its SHA-256 is {digest}, not {archive.sha256}."
        )


@asynccontextmanager
async def fetched(storage: Storage, archive: Archive) -> AsyncIterator[parquet.ParquetFile]:
    """The archive's file, fetched and found to be the one that was written; ``ArchiveDamaged`` if it is another."""
    with tempfile.TemporaryDirectory(prefix="headrace-archive-") as folder:
        path = Path(folder) / "month.parquet"
        await fetch_file(storage, archive, path)
        file = parquet.ParquetFile(path)
        try:
            if (file.table, file.row_count) != (archive.table_name, archive.row_count):
                raise ArchiveDamaged(f"{archive.location} holds {file.row_count} rows of {file.table}.")
            yield file
        finally:
            file.close()

"""A month leaves its table: detach → archive → verify → drop.

Each step is recorded in ``headrace.archives`` by the commit that does it, so that a run that was killed is taken up
where it stopped, by whoever comes next. Nothing is dropped unless the file was read back from where it is stored, in
this very run, and holds exactly the rows that are about to go.

The table itself is locked only while the catalog changes. PostgreSQL's DETACH … CONCURRENTLY is not for tables with a
default partition, so the lock is a real one; it is asked for with a patience of milliseconds, and asked for again
later if somebody is using the table: whoever comes meanwhile never waits behind us for long.
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
from headrace.audit import Action, Resource, ResourceType, Who, seals
from headrace.database import DatabaseConfig, Tx
from headrace.extras import load
from headrace.operations import parquet, store
from headrace.operations.config import LockConfig
from headrace.operations.errors import (
    ArchiveDamaged,
    ArchiveNotFound,
    MonthNeeded,
    MonthNotFound,
    PartitionBusy,
    RetiredElsewhere,
)
from headrace.operations.model import Archive, ArchiveState, MonthlyTable, Retired, monthly
from headrace.operations.owner import Connection, as_owner
from headrace.storage import ObjectNotFound, Storage

log = logs.get(__name__)

Step = Callable[[str], None]
"""Told what has just been done: for a progress line, and for tests that stop there."""


def _no_step(_: str) -> None:
    """Nobody wants to know."""


async def retire_month(
    owner: DatabaseConfig,
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
    a file that was found damaged while the rows are still here.
    """
    table = monthly(table_name)
    # Before anything is taken out, and in a thread: loading it the first time takes a while.
    await asyncio.to_thread(load, "pyarrow.parquet", extra="archive")
    async with as_owner(owner) as connection, _alone(connection, table):
        work = _Work(connection, storage, table, month, who, lock or LockConfig(), on_step)
        return await work.run(write_again=write_again)


@asynccontextmanager
async def _alone(connection: Connection, table: MonthlyTable) -> AsyncIterator[None]:
    key = f"headrace.retire.{table.name}"
    if not await connection.fetchval("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", key):
        raise RetiredElsewhere(f"Another process is retiring months of {table.name} right now.")
    try:
        yield
    finally:
        if not connection.is_closed():
            await connection.execute("SELECT pg_advisory_unlock(hashtextextended($1, 0))", key)


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
            await store.mark_to_write_again(self._tx, archive.id)
            archive = await self._found()
        if archive.state is ArchiveState.DETACHED:
            archive = await self._write(archive)
        if archive.state is ArchiveState.ARCHIVED:
            archive = await self._verify(archive)
            archive = await self._drop(archive)
        return Retired(archive, self._locked)

    async def _find(self) -> Archive | None:
        return await store.find_month(self._tx, self._table.name, self._month)

    async def _found(self) -> Archive:
        archive = await self._find()
        assert archive is not None
        return archive

    async def _detach(self) -> Archive:
        archive_id = ids.new("arc")

        async def book(tx: Tx) -> None:
            # Nobody writes to this month while we ask whether it is still needed, and until it has left. Only its own
            # writers wait; the time is enough for autovacuum to notice that it is in the way.
            await tx.execute("SET LOCAL lock_timeout = '2s'")
            await tx.execute(f"LOCK TABLE headrace.{self._name} IN SHARE MODE")
            if reason := await store.why_needed(tx, self._table, self._month):
                raise MonthNeeded(f"{self._name} must stay: {reason}.")
            await store.insert_detached(tx, archive_id, self._table, self._month)
            await audit.record(tx, self._who, Action.DISABLED, self._partition())

        await self._briefly(
            f"ALTER TABLE headrace.{self._table.name} DETACH PARTITION headrace.{self._name}",
            first=f"headrace.{self._table.name}",
            book=book,
        )
        self._step("detached")
        return await self._found()

    async def _write(self, archive: Archive) -> Archive:
        location = f"{self._table.name}/{self._name}.{archive.id}.parquet"
        with tempfile.TemporaryDirectory(prefix="headrace-archive-") as folder:
            file = Path(folder) / "month.parquet"
            summary = await parquet.write(self._connection, self._table, self._name, file)
            self._step("written")
            await self._storage.put(location, file)
        self._step("stored")
        async with self._connection.transaction():
            if await store.mark_archived(self._tx, archive.id, location, summary):
                archive = await self._found()
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
                f"{exc.message} The rows are still in the database: `{again}` writes it anew."
            ) from exc
        if not await store.mark_verified(self._tx, archive):
            raise ArchiveDamaged(f"{archive.location} was written anew meanwhile.")
        self._step("verified")
        return await self._found()

    async def _drop(self, archive: Archive) -> Archive:
        # Each foreign key is a trigger on another, busy table: one at a time, so that none is held for the others.
        for name in await store.list_foreign_keys(self._tx, self._name):
            await self._briefly(f"ALTER TABLE headrace.{self._name} DROP CONSTRAINT {name}")

        async def book(tx: Tx) -> None:
            if not await store.mark_dropped(tx, archive):
                raise ArchiveDamaged(f"{archive.location} was written anew meanwhile.")
            if self._table.name == "audit_events":
                await seals.forget_leaves(tx, self._month)
            await store.count_removed(tx, self._table.name, archive.row_count or 0)
            await audit.record(tx, self._who, Action.DELETED, self._partition(), data={"archive": archive.id})

        # By now nobody else can have to do with it, so this holds nobody up, however long the files take to go.
        locked = self._locked
        await self._briefly(f"DROP TABLE headrace.{self._name}", book=book)
        self._locked = locked
        self._step("dropped")
        return await self._found()

    async def _briefly(
        self, change: str, *, first: str | None = None, book: Callable[[Tx], Awaitable[None]] | None = None
    ) -> None:
        """Change the catalog in one short transaction, again and again until nobody is in the way."""
        deadline = time.monotonic() + self._lock.patience.total_seconds()
        while True:
            try:
                await self._try_to(change, first, book)
            except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as exc:
                if time.monotonic() > deadline:
                    raise PartitionBusy(f"{self._table.name} is in use without a pause; try again later.") from exc
                log.info("retention.waits", partition=self._name)
                await asyncio.sleep(self._lock.pause.total_seconds() * random.uniform(0.5, 1.5))  # noqa: S311
            else:
                return

    async def _try_to(self, change: str, first: str | None, book: Callable[[Tx], Awaitable[None]] | None) -> None:
        asked = None
        try:
            async with self._connection.transaction():
                # Whoever waits for us must not wait for a disk, too: if this commit is lost, all of it is.
                await self._connection.execute("SET LOCAL synchronous_commit = off")
                if book is not None:
                    await book(self._tx)
                await self._connection.execute(f"SET LOCAL lock_timeout = {_millis(self._lock.wait)}")
                asked = time.monotonic()
                if first is not None:
                    await self._connection.execute(f"LOCK TABLE ONLY {first} IN ACCESS EXCLUSIVE MODE")
                await self._connection.execute(change)
        finally:
            if asked is not None:
                self._locked = max(self._locked, timedelta(seconds=time.monotonic() - asked))

    def _partition(self) -> Resource:
        return Resource(ResourceType.PARTITION, self._name, {"table": self._table.name})


def _resource(archive: Archive) -> Resource:
    return Resource(ResourceType.ARCHIVE, archive.id, {"name": archive.name})


def _millis(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)


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

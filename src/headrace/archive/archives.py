"""Archived months: reading, verifying and restoring them."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import asyncpg

from headrace import audit
from headrace.archive import parquet, store
from headrace.archive.errors import (
    AlreadyRestored,
    ArchiveDamaged,
    ArchiveNotFound,
    ArchiveNotWritten,
    BadQuery,
    NothingArchived,
)
from headrace.archive.model import MONTHLY, Archive, ArchiveState, monthly
from headrace.archive.retiring import fetch_file, fetched
from headrace.archive.sessions import as_owner, session
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Database, DatabaseConfig, Tx
from headrace.extras import load
from headrace.storage import Storage

_ALL = 100_000  # eight thousand years of months


async def get_archive(tx: Tx, name: str) -> Archive:
    """By its id, or by the name that the partition had (``audit_events_y2026m01``)."""
    archive = await store.find_archive(tx, name)
    if archive is None:
        every = await store.list_archives(tx, limit=_ALL)
        archive = next((one for one in every if one.name == name), None)
    if archive is None:
        raise ArchiveNotFound(f"There is no archive {name}: `headrace archive list` shows all.")
    return archive


async def verify(config: DatabaseConfig, storage: Storage, archive: Archive) -> Archive:
    """Read the file back and compare it with its record, and with the table while that still exists.

    ``ArchiveDamaged`` names the difference.
    """
    _require_written(archive)
    async with fetched(storage, archive) as file, session(config) as connection:
        if archive.state is ArchiveState.ARCHIVED:
            table = monthly(archive.table_name)
            if difference := await parquet.find_difference(connection, table, archive.name, file):
                raise ArchiveDamaged(f"{archive.location} does not hold what {archive.name} holds: {difference}.")
        await store.note_verified(Tx(connection), archive)
        return await get_archive(Tx(connection), archive.id)


async def restore(owner: DatabaseConfig, storage: Storage, archive: Archive, *, who: Who) -> str:
    """Put an archived month's rows back into a table of their own, and give its name.

    Beside the table they came from, not in it: retention would retire them again, and rows that they referred to may
    be gone. All of it happens in one transaction, in which the rows are compared with the file once more.
    """
    _require_written(archive)
    if archive.restored_as is not None:
        raise AlreadyRestored(f"{archive.name} is restored as headrace.{archive.restored_as} already.")
    name, table = f"{archive.name}_restored", monthly(archive.table_name)
    async with fetched(storage, archive) as file, as_owner(owner) as connection:
        tx = Tx(connection)
        async with connection.transaction():
            # As the columns were then; the table may have other ones by now.
            columns = ", ".join(f"{column.quoted} {column.type}" for column in file.columns)
            try:
                await tx.execute(f"CREATE TABLE headrace.{name} ({columns})")
            except asyncpg.DuplicateTableError as exc:
                raise AlreadyRestored(f"There is a table headrace.{name} already.") from exc
            await parquet.load_rows(tx, name, file)
            await tx.execute(f"CREATE INDEX idx_{name}_key ON headrace.{name} ({', '.join(table.key)})")
            if difference := await parquet.find_difference(connection, table, name, file):
                raise ArchiveDamaged(f"{archive.location} cannot be restored: {difference}.")
            await tx.execute(f"GRANT SELECT ON headrace.{name} TO headrace_app")
            await tx.execute(f"COMMENT ON TABLE headrace.{name} IS 'Restored from {archive.location}.'")
            await store.mark_restored(tx, archive.id, name)
            restored = Resource(ResourceType.PARTITION, name, {"table": archive.table_name})
            await audit.record(tx, who, Action.CREATED, restored, data={"archive": archive.id})
    return name


async def discard(owner: DatabaseConfig, archive: Archive, *, who: Who) -> None:
    """Drop the table that the archive was restored into; the archive stays."""
    if archive.restored_as is None:
        raise ArchiveNotFound(f"{archive.name} is not restored.")
    async with as_owner(owner) as connection, connection.transaction():
        tx = Tx(connection)
        await tx.execute(f"DROP TABLE IF EXISTS headrace.{archive.restored_as}")
        await store.mark_restored(tx, archive.id, None)
        discarded = Resource(ResourceType.PARTITION, archive.restored_as, {"table": archive.table_name})
        await audit.record(tx, who, Action.DELETED, discarded, data={"archive": archive.id})


async def read_rows(config: DatabaseConfig, storage: Storage, archive: Archive) -> AsyncGenerator[dict[str, Any], None]:
    """A month's rows wherever they are, in their order: instants as datetimes, jsonb as PostgreSQL's text.

    A caller that may leave before the end closes it: until then it has a connection, or a file.
    """
    if archive.state is ArchiveState.DETACHED:
        table = monthly(archive.table_name)
        async with (
            session(config) as connection,
            aclosing(parquet.read_table(connection, table, archive.name)) as batches,
        ):
            async for batch in batches:
                for row in batch.to_pylist():
                    yield row
        return
    async with fetched(storage, archive) as file:
        for batch in file.batches():
            for row in await asyncio.to_thread(batch.to_pylist):
                yield row


async def read_month(
    db: Database, storage: Storage, table_name: str, month: date
) -> AsyncGenerator[dict[str, Any], None]:
    """The same of a month that may be on its way: where it is gone when we come to read, it is read where it went."""
    archive = await _get_month(db, table_name, month)
    begun = False
    while True:
        try:
            async with aclosing(read_rows(db.config, storage, archive)) as rows:
                async for row in rows:
                    begun = True
                    yield row
        except (asyncpg.UndefinedTableError, ArchiveDamaged):
            now = await _get_month(db, table_name, month)
            if begun or (now.state, now.sha256) == (archive.state, archive.sha256):
                raise
            archive = now
        else:
            return


async def _get_month(db: Database, table_name: str, month: date) -> Archive:
    async with db.transaction(readonly=True) as tx:
        archive = await store.find_month(tx, table_name, month)
    if archive is None:
        raise ArchiveNotFound(f"{table_name} has no archive of {month:%Y-%m}.")
    return archive


async def list_months(db: Database, table_name: str) -> dict[date, Archive]:
    """The months that are not in their table any more."""
    async with db.transaction(readonly=True) as tx:
        return {archive.period: archive for archive in await store.list_archives(tx, table=table_name, limit=_ALL)}


def _require_written(archive: Archive) -> None:
    if archive.state is ArchiveState.DETACHED:
        raise ArchiveNotWritten(
            f"{archive.name} is detached and not archived yet: `headrace partitions retire {archive.table_name} "
            f"{archive.period:%Y-%m}` continues with it. Its rows are in headrace.{archive.name}."
        )


# -- asking


@dataclass(frozen=True, slots=True)
class Answer:
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    files: int


async def query(
    db: Database, storage: Storage, sql: str, *, since: date | None = None, until: date | None = None
) -> Answer:
    """Ask the archives in SQL (DuckDB's), under their tables' names; months from ``since`` to ``until``, both included.

    Only the months of tables that the query names are fetched, and each is checked against its hash.
    """
    duckdb = load("duckdb", extra="archive")
    try:
        # Finding the names opens the files that the query names: there are none to be opened yet.
        named = set(duckdb.connect(config={"enable_external_access": False}).get_table_names(sql))
    except duckdb.Error as exc:
        raise BadQuery(f"DuckDB refuses the query: {exc}") from exc
    async with db.transaction(readonly=True) as tx:
        matching = [
            archive
            for table in MONTHLY
            if table in named
            for archive in await store.list_archives(
                tx, table=table, states=[ArchiveState.ARCHIVED, ArchiveState.DROPPED], limit=_ALL
            )
            if (since is None or archive.period >= since.replace(day=1)) and (until is None or archive.period <= until)
        ]
    for table in sorted(named & MONTHLY.keys() - {archive.table_name for archive in matching}):
        months = "".join([f" from {since:%Y-%m} on" if since else "", f" until {until:%Y-%m}" if until else ""])
        raise NothingArchived(f"Nothing of {table}{months} is archived: `headrace archive list` shows the archives.")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-query-")))
        for archive in matching:
            await fetch_file(storage, archive, folder / f"{archive.name}.parquet")
        return await asyncio.to_thread(_ask, duckdb, sql, folder, matching)


def _ask(duckdb: Any, sql: str, folder: Path, archives: Sequence[Archive]) -> Answer:
    with duckdb.connect() as session:
        try:
            for name in {archive.table_name for archive in archives}:
                files = [str(folder / f"{archive.name}.parquet") for archive in archives if archive.table_name == name]
                listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
                session.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}], union_by_name = true)")
            # The query may read the archives, and nothing else on this machine.
            session.execute(f"SET allowed_directories = ['{str(folder).replace(chr(39), chr(39) * 2)}']")
            session.execute("SET TimeZone = 'UTC'; SET enable_external_access = false; SET lock_configuration = true")
            answer = session.sql(sql)
            if answer is None:  # a statement that gives no rows
                return Answer((), [], len(archives))
            table = answer.to_arrow_table()
            values = [column.to_pylist() for column in table.columns]
            return Answer(tuple(table.column_names), list(zip(*values, strict=True)), len(archives))
        except duckdb.CatalogException as exc:
            raise BadQuery(
                f"{exc} (archived: {', '.join(sorted({a.table_name for a in archives})) or 'nothing'})"
            ) from exc
        except duckdb.Error as exc:
            raise BadQuery(f"DuckDB refuses the query: {exc}") from exc

"""Taking a backup while everything runs.

All rows come from one snapshot. Files are copied after it, and only those that a row of the snapshot names; a file that
was deleted meanwhile is listed as missing. The backup is written under a temporary name, read back and compared, and
then renamed.
"""

import asyncio
import hashlib
import os
import secrets
import zipfile
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, cast

import asyncpg

from headrace import __version__, migrations
from headrace.archive import heads
from headrace.assets.model import Kind
from headrace.assets.store.sweep import list_orphans
from headrace.backup import catalog
from headrace.backup.errors import BackupExists, BackupRefused
from headrace.backup.model import (
    COMMENT,
    MANIFEST,
    OURS,
    Manifest,
    RowDigest,
    Stored,
    StoredFile,
    Table,
    fingerprint,
    quoted,
)
from headrace.backup.reading import check
from headrace.database import DatabaseConfig, Tx, connect_alone
from headrace.storage import ObjectNotFound, Storage, StorageConfig
from headrace.storage.folder import explain

Report = Callable[[int, int], None]  # bytes done, of how many
# Gives the SQL that makes what the words name, as pg_dump prints it: DumpSchema(words, snapshot).
DumpSchema = Callable[[Sequence[str], str], str]

STATEMENT_TIMEOUT = timedelta(days=20)  # in milliseconds it must fit into an integer
_LOCK_TIMEOUT_S = 30
PARTS = {"pre": "--section=pre-data", "post": "--section=post-data"}


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a backup."""

    database: DatabaseConfig  # as a user with the right to read all of it
    files: StorageConfig
    archive: StorageConfig
    key: bytes | None
    dump: DumpSchema


async def take(source: Source, target: Path, *, replacing: bool, report: Report) -> Manifest:
    """Write the backup to ``target``, whole or not at all."""
    _refuse_existing(target, replacing)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with _private(draft) as stream:
            manifest = await _write(source, stream, report)
            stream.flush()
            os.fsync(stream.fileno())
        await asyncio.to_thread(check, draft)
        _refuse_existing(target, replacing)
        draft.replace(target)
        _sync_folder(target.parent)
    except OSError as exc:
        raise explain(exc, str(target)) from exc
    finally:
        draft.unlink(missing_ok=True)
    return manifest


def _refuse_existing(target: Path, replacing: bool) -> None:
    if target.exists() and not replacing:
        raise BackupExists(f"{target} exists: choose another name, or replace it with --force.")


def _private(file: Path) -> BinaryIO:
    # It holds every user's data.
    return os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w+b")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Writer:
    """The ZIP file: members by name, each with its length and digest in the manifest."""

    def __init__(self, stream: BinaryIO, manifest: Manifest, report: Report) -> None:
        self._zip = zipfile.ZipFile(stream, "w", allowZip64=True)
        self._manifest = manifest
        self._report = report
        self._done = 0
        self.total = 0

    @asynccontextmanager
    async def member(self, name: str, *, compressed: bool) -> AsyncIterator[Callable[[bytes], None]]:
        entry = zipfile.ZipInfo(name, date_time=datetime.now(UTC).timetuple()[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        entry.external_attr = 0o600 << 16
        digest, length = hashlib.sha256(), 0
        with self._zip.open(entry, "w", force_zip64=True) as handle:

            def write(piece: bytes) -> None:
                nonlocal length
                handle.write(piece)
                digest.update(piece)
                length += len(piece)
                self._done += len(piece)
                self._report(self._done, max(self.total, self._done))

            yield write
        self._manifest.members[name] = (length, digest.hexdigest())

    async def add(self, name: str, content: bytes) -> None:
        async with self.member(name, compressed=True) as write:
            write(content)

    def give_up(self) -> None:
        """Close it in whatever state it is: its file is about to be deleted."""
        with suppress(OSError, ValueError):
            self._zip.close()

    def close(self) -> None:
        content = self._manifest.as_bytes()
        self._zip.writestr(MANIFEST, content, compress_type=zipfile.ZIP_DEFLATED)
        self._zip.comment = COMMENT + hashlib.sha256(content).hexdigest().encode()
        self._zip.close()


SIZE = """
SELECT coalesce(sum(pg_relation_size(pg_class.oid)), 0)::bigint
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = ANY ($1) AND relkind = 'r'
"""
LAST_SEAL = "SELECT coalesce(max(number), 0) FROM headrace.audit_seals"


async def _write(source: Source, stream: BinaryIO, report: Report) -> Manifest:
    manifest = Manifest(
        version=__version__,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        key_fingerprint=None if source.key is None else fingerprint(source.key),
    )
    writer = Writer(stream, manifest, report)
    try:
        async with _snapshot(source.database) as (connection, schemas):
            manifest.made_at = (await connection.fetchval("SELECT now()")).isoformat(timespec="seconds")
            manifest.schemas = schemas
            writer.total = await connection.fetchval(SIZE, [OURS, *schemas])
            await _write_database(source, connection, manifest, writer)
            manifest.files = await _write_files(source.files, connection, writer)
            last_seal = await connection.fetchval(LAST_SEAL)
        manifest.archive = await _write_archive(source.archive, last_seal, writer)
    except BaseException:
        writer.give_up()
        raise
    writer.close()
    return manifest


async def _write_database(
    source: Source, connection: "asyncpg.Connection[Any]", manifest: Manifest, writer: Writer
) -> None:
    status = await migrations.read_status(connection)
    migrations.refuse_too_new(status)
    manifest.postgres = str(connection.get_server_version().major)
    manifest.migration, manifest.revision = status.current, status.stale.revision
    manifest.months = await catalog.list_months(connection)
    manifest.grants = await catalog.list_grants(connection)
    manifest.roles = await catalog.list_roles(connection, manifest.schemas, manifest.grants)
    schemas = [OURS, *manifest.schemas]
    tables = await catalog.list_tables(connection, schemas)
    known = catalog.made_by_migrations()
    manifest.extra_tables = [each.name for each in tables if each.schema == OURS and each.name not in known]
    await _write_definitions(source, connection, manifest, writer)
    for table in tables:
        manifest.tables.append(await _write_table(connection, table, writer))
    manifest.sequences = await catalog.list_sequences(connection, schemas)


@asynccontextmanager
async def _snapshot(config: DatabaseConfig) -> AsyncIterator[tuple["asyncpg.Connection[Any]", list[str]]]:
    """A connection that sees one moment, in which no table can be dropped."""
    patient = replace(config, statement_timeout=STATEMENT_TIMEOUT, idle_in_transaction_timeout=STATEMENT_TIMEOUT)
    async with connect_alone(patient) as connection:
        await migrations.read_status(connection)  # an unfinished restore is not worth a backup
        schemas = await catalog.list_own_schemas(connection)
        await _join(connection, schemas)
        tables = await catalog.list_tables(connection, [OURS, *schemas])
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT_S}s'")
            # Before the first query, which takes the snapshot.
            await connection.execute(
                f"LOCK TABLE {', '.join(table.qualified for table in tables)} IN ACCESS SHARE MODE"
            )
            await set_text_format(connection)
            yield connection, schemas


async def set_text_format(connection: "asyncpg.Connection[Any]") -> None:
    """Have COPY write values in one way, whatever the server's settings are: digests compare that text."""
    for setting in ("datestyle = 'ISO'", "intervalstyle = 'postgres'", "extra_float_digits = 1"):
        await connection.execute(f"SET LOCAL {setting}")


MAY_READ = "SELECT has_schema_privilege($1, 'USAGE') AND pg_has_role($1, 'USAGE')"


async def _join(connection: "asyncpg.Connection[Any]", schemas: Collection[str]) -> None:
    """Become a member of the roles that own the programs' schemas: without that only a superuser can read them."""
    for schema in schemas:
        if await connection.fetchval(MAY_READ, schema):
            continue
        try:
            await connection.execute(f"GRANT {quoted(schema)} TO CURRENT_USER")
        except asyncpg.InsufficientPrivilegeError as exc:
            user = await connection.fetchval("SELECT current_user")
            raise BackupRefused(
                f"The schema {schema} may not be read by {user}: let an administrator run GRANT {quoted(schema)} TO "
                f"{quoted(user)}; or name another user in HEADRACE_DATABASE_OWNER_URL."
            ) from exc


async def _write_definitions(
    source: Source, connection: "asyncpg.Connection[Any]", manifest: Manifest, writer: Writer
) -> None:
    """What no migration makes: the tables of programs, and months that are detached or were put back."""
    wanted = {
        "schemas": [f"--schema={quoted(schema)}" for schema in manifest.schemas],
        "tables": [f"--table={OURS}.{quoted(name)}" for name in manifest.extra_tables],
    }
    if not any(wanted.values()):
        return
    snapshot = await connection.fetchval("SELECT pg_export_snapshot()")
    for what, words in wanted.items():
        for part, section in PARTS.items():
            if words:
                text = await asyncio.to_thread(source.dump, [*words, section], snapshot)
                await writer.add(f"definitions/{what}.{part}.sql", text.encode())


async def _write_table(connection: "asyncpg.Connection[Any]", table: Table, writer: Writer) -> Table:
    rows = RowDigest()
    async with writer.member(table.member, compressed=True) as write:

        async def take_piece(piece: bytes) -> None:
            rows.update(piece)
            write(piece)

        await read_rows(connection, table, take_piece)
    return replace(table, rows=rows.rows, digest=rows.hexdigest())


async def read_rows(connection: "asyncpg.Connection[Any]", table: Table, take_piece: Callable[[bytes], Any]) -> None:
    sql = f"SELECT {table.column_list} FROM {table.qualified}"
    if not table.columns:
        return
    await connection.copy_from_query(sql, output=cast("Any", take_piece), timeout=STATEMENT_TIMEOUT.total_seconds())


# -- files


# What rows name for good; previews are drawn again when they are missing, and steps are done again.
NAMED = """
SELECT 'media/' || split_part(storage_key, '#', 1) AS name FROM headrace.assets
WHERE storage_bucket = 'media' AND purged_at IS NULL AND status = 'UPLOADED'
UNION SELECT result_bucket || '/' || result_key FROM headrace.task_results
WHERE purged_at IS NULL AND deleted_at IS NULL
ORDER BY 1
"""


def _is_missing(config: StorageConfig) -> bool:
    return config.url.startswith("file://") and not Path(config.url.removeprefix("file://")).exists()


async def _write_files(config: StorageConfig, connection: "asyncpg.Connection[Any]", writer: Writer) -> Stored:
    named = {row["name"] for row in await connection.fetch(NAMED)}
    if _is_missing(config):
        return Stored(config.url, copied=True, missing=sorted(named))
    storage = Storage(config)
    stored = Stored(config.url, copied=storage.folder is not None)
    try:
        for kind in Kind:
            async for batch in storage.list_objects(kind):
                sizes = {each.name.removeprefix(f"{kind}/"): each.size for each in batch}
                orphans = frozenset(await list_orphans(Tx(connection), kind, list(sizes)))
                kept = [StoredFile(f"{kind}/{key}", size) for key, size in sizes.items() if key not in orphans]
                await _write_all(storage, stored, kept, "files", writer)
    finally:
        await storage.close()
    stored.missing = sorted({*stored.missing, *(named - {each.name for each in stored.files})})
    return stored


async def _write_archive(config: StorageConfig, last_seal: int, writer: Writer) -> Stored:
    """All of it, but for heads of seals that are younger than the rows: they would contradict the trail."""
    if _is_missing(config):
        return Stored(config.url, copied=True)
    storage = Storage(config)
    stored = Stored(config.url, copied=storage.folder is not None)
    try:
        async for batch in storage.list_objects():
            kept = [StoredFile(each.name, each.size) for each in batch if heads.number_in(each.name) <= last_seal]
            await _write_all(storage, stored, kept, "archive", writer)
    finally:
        await storage.close()
    return stored


async def _write_all(
    storage: Storage, stored: Stored, files: Sequence[StoredFile], folder: str, writer: Writer
) -> None:
    if not stored.copied:
        stored.files += files
        return
    writer.total += sum(each.size for each in files)
    for each in files:
        member = f"{folder}/{each.name}"
        try:
            # Opened first: a file that was deleted meanwhile leaves no member behind.
            await storage.size_of(each.name)
            pieces = storage.read(each.name)
            first = await anext(pieces, b"")
        except ObjectNotFound:
            stored.missing.append(each.name)
            continue
        digest, size = hashlib.sha256(first), len(first)
        async with writer.member(member, compressed=False) as write:
            write(first)
            async for piece in pieces:
                write(piece)
                digest.update(piece)
                size += len(piece)
        stored.files.append(StoredFile(each.name, size, digest.hexdigest()))

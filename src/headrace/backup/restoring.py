"""Restoring a backup: the schema by migrations, then the rows, then the files.

The target is marked first and unmarked last (migrations/unfinished.py), so that an interruption at any point leaves a
database that everything refuses. Rows are loaded in one transaction, in which foreign keys are dropped and made again,
and triggers disabled and enabled: an interruption leaves none of that behind either.
"""

import asyncio
import hashlib
import re
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

import asyncpg

from headrace import ids, migrations
from headrace.backup import target
from headrace.backup.errors import BackupDamaged, OtherSecretKey, RestoreFailed
from headrace.backup.model import OURS, Manifest, RowDigest, Stored, Table, fingerprint, quoted
from headrace.backup.reading import opened, refuse_too_new
from headrace.backup.taking import STATEMENT_TIMEOUT, read_rows, set_text_format
from headrace.database import DatabaseConfig, connect_alone
from headrace.storage import ObjectNotFound, Storage, StorageConfig

Report = Callable[[int, int], None]
Say = Callable[[str], None]

_PIECE = 512 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """Where the backup goes."""

    database: DatabaseConfig  # as a user with the right to create roles and schemas
    files: StorageConfig
    archive: StorageConfig
    lock_timeout: timedelta


@dataclass(slots=True)
class Restored:
    rows: int = 0
    files: int = 0
    missing: list[str] = field(default_factory=list)  # files that were gone when the backup was made
    not_found: list[str] = field(default_factory=list)  # files of a bucket that are not there now
    without_password: list[str] = field(default_factory=list)  # roles


def refuse_other_key(manifest: Manifest, key: bytes | None, *, where: str) -> None:
    """Raise ``OtherSecretKey`` unless the target has the key that the backup's secrets were encrypted with."""
    if manifest.key_fingerprint is None:
        return
    if key is None:
        raise OtherSecretKey(
            f"The backup was made with the secret key {manifest.key_fingerprint}, and there is none here: put it into "
            f"{where} or HEADRACE_SECRET_KEY first. If it is lost, --other-key restores without it, and stored secrets "
            "of webhooks cannot be read."
        )
    if fingerprint(key) != manifest.key_fingerprint:
        raise OtherSecretKey(
            f"The backup was made with the secret key {manifest.key_fingerprint}, and the one here is "
            f"{fingerprint(key)}: put the right one into {where} or HEADRACE_SECRET_KEY first. If it is lost, "
            "--other-key restores without it, and stored secrets of webhooks cannot be read."
        )


async def restore(file: Path, to: Target, *, replacing: bool, verify: bool, report: Report, say: Say) -> Restored:
    """Put the backup, which was checked, into the target."""
    config = replace(to.database, statement_timeout=STATEMENT_TIMEOUT, idle_in_transaction_timeout=STATEMENT_TIMEOUT)
    done = Restored()
    with opened(file) as (archive, manifest):
        refuse_too_new(manifest)
        async with connect_alone(config) as connection:
            await target.refuse_if_used(connection)
            if not replacing:
                await target.refuse_if_full(connection, manifest, (to.files, to.archive), system_user=ids.SYSTEM_USER)
            await target.refuse_other_schemas(connection, manifest)
            await target.clear_and_mark(connection, manifest, file.name)
            move = {"lock_timeout": to.lock_timeout, "report": say, "restoring": True}
            await migrations.migrate(config, to=manifest.migration, **cast("Any", move))
            await _load(connection, archive, manifest, done, report)
            for storage, stored, folder in (
                (to.files, manifest.files, "files"),
                (to.archive, manifest.archive, "archive"),
            ):
                await target.clear_storage(storage, stored)
                await _put_files(storage, stored, folder, archive, done)
            if verify:
                say("comparing digests")
                await _compare_rows(connection, manifest)
                await _compare_files(to, manifest)
            await migrations.migrate(config, **cast("Any", move))
            await target.unmark(connection)
            await connection.execute("ANALYZE")
    return done


# -- rows

AS_OWNER = "SET LOCAL ROLE headrace_owner"


async def _load(
    connection: "asyncpg.Connection[Any]", archive: zipfile.ZipFile, manifest: Manifest, done: Restored, report: Report
) -> None:
    total = sum(manifest.members[table.member][0] for table in manifest.tables)
    loaded = 0
    try:
        async with connection.transaction():
            done.without_password = await target.make_roles(connection, manifest.roles)
            await _define(connection, archive, manifest, "pre")
            await connection.execute(AS_OWNER)
            await _make_months(connection, manifest)
            keys = await _drop_foreign_keys(connection)
            triggers = await _disable_triggers(connection)
            ours = [table for table in manifest.tables if table.schema == OURS]
            await connection.execute(f"TRUNCATE {', '.join(table.qualified for table in ours)}")
            for table in ours:
                loaded = await _load_table(connection, archive, table, lambda now: report(now, total), loaded)
            for statement in (*keys, *triggers):
                await connection.execute(statement)
            await connection.execute("RESET ROLE")
            for table in manifest.tables:
                if table.schema != OURS:
                    loaded = await _load_table(connection, archive, table, lambda now: report(now, total), loaded)
            await _set_sequences(connection, manifest)
            await _define(connection, archive, manifest, "post")
            await _refresh_views(connection, manifest)
            await _grant(connection, manifest)
            done.rows = manifest.rows
    except (asyncpg.SyntaxOrAccessError, asyncpg.DataError, asyncpg.IntegrityConstraintViolationError) as exc:
        raise RestoreFailed(f"The target refuses the contents of the backup: {exc}") from exc


SET_SEQUENCE = "SELECT setval(format('%I.%I', $1::text, $2::text)::regclass, $3, $4)"


async def _set_sequences(connection: "asyncpg.Connection[Any]", manifest: Manifest) -> None:
    for each in manifest.sequences:
        await connection.execute(SET_SEQUENCE, each.schema, each.name, each.value, each.called)


async def _load_table(
    connection: "asyncpg.Connection[Any]",
    archive: zipfile.ZipFile,
    table: Table,
    report: Callable[[int], None],
    before: int,
) -> int:
    if not table.columns:
        return before

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal before
        with archive.open(table.member) as member:
            while piece := await asyncio.to_thread(member.read, _PIECE):
                before += len(piece)
                report(before)
                yield piece

    status = await connection.copy_to_table(
        table.name,
        source=cast("Any", pieces()),
        columns=table.columns,
        schema_name=table.schema,
        timeout=STATEMENT_TIMEOUT.total_seconds(),
    )
    if status != f"COPY {table.rows}":
        raise BackupDamaged(
            f"{table.schema}.{table.name} has {table.rows} rows in the manifest, and {status} says not."
        )
    return before


async def _define(
    connection: "asyncpg.Connection[Any]", archive: zipfile.ZipFile, manifest: Manifest, part: str
) -> None:
    for what in ("tables", "schemas"):
        name = f"definitions/{what}.{part}.sql"
        # Of a schema without tables there is nothing to make.
        if name in manifest.members and (script := portable(archive.read(name).decode())):
            await connection.execute(script, timeout=STATEMENT_TIMEOUT.total_seconds())


def portable(script: str) -> str:
    """What pg_dump printed, for a server of another version: without its settings and psql's own commands.

    The schemas themselves are there already: their owners may not make any.
    """
    _, mark, body = script.partition("\n--\n-- Name: ")
    if not mark:
        return ""
    body = re.sub(r"^\\(un)?restrict .*$", "", body, flags=re.MULTILINE)
    body = re.sub(r"^CREATE SCHEMA [^;]+;$", "", body, flags=re.MULTILINE)
    return f"SET LOCAL search_path = ''; SET LOCAL check_function_bodies = off;\n-- Name: {body}"


MAKE_MONTH = "SELECT headrace.create_month_partitions(format('headrace.%I', $1::text)::regclass, $2, $2)"


async def _make_months(connection: "asyncpg.Connection[Any]", manifest: Manifest) -> None:
    for parent, months in manifest.months.items():
        for month in months:
            await connection.execute(MAKE_MONTH, parent, date.fromisoformat(month))


LIST_FOREIGN_KEYS = """
SELECT conrelid::regclass::text AS "table", conname::text AS name, pg_get_constraintdef(oid) AS definition,
       obj_description(oid, 'pg_constraint') AS comment
FROM pg_constraint WHERE connamespace = 'headrace'::regnamespace AND contype = 'f' AND conparentid = 0 ORDER BY 1, 2
"""


async def _drop_foreign_keys(connection: "asyncpg.Connection[Any]") -> list[str]:
    """Gives the statements that make them again, which also check every row."""
    statements = []
    for table, name, definition, comment in await connection.fetch(LIST_FOREIGN_KEYS):
        await connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {quoted(name)}")
        statements.append(f"ALTER TABLE {table} ADD CONSTRAINT {quoted(name)} {definition}")
        if comment is not None:
            text = comment.replace("'", "''")
            statements.append(f"COMMENT ON CONSTRAINT {quoted(name)} ON {table} IS '{text}'")
    return statements


# Parents first: what is enabled on one is enabled on its partitions, which may have their own mode.
LIST_TRIGGERS = """
SELECT tgrelid::regclass::text AS "table", tgname::text AS name, tgenabled::text AS mode
FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = 'headrace'::regnamespace AND NOT tgisinternal ORDER BY relispartition, 1, 2
"""
_MODES = {"O": "ENABLE", "A": "ENABLE ALWAYS", "R": "ENABLE REPLICA", "D": "DISABLE"}


async def _disable_triggers(connection: "asyncpg.Connection[Any]") -> list[str]:
    """Gives the statements that set each as it was."""
    rows = await connection.fetch(LIST_TRIGGERS)
    for table in dict.fromkeys(row["table"] for row in rows):
        await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    return [f"ALTER TABLE {row['table']} {_MODES[row['mode']]} TRIGGER {quoted(row['name'])}" for row in rows]


LIST_VIEWS = """
SELECT format('%I.%I', nspname, relname) AS view FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = ANY ($1) AND relkind = 'm' ORDER BY pg_class.oid
"""


async def _refresh_views(connection: "asyncpg.Connection[Any]", manifest: Manifest) -> None:
    for row in await connection.fetch(LIST_VIEWS, manifest.schemas):
        await connection.execute(f"REFRESH MATERIALIZED VIEW {row['view']}")


async def _grant(connection: "asyncpg.Connection[Any]", manifest: Manifest) -> None:
    await connection.execute(AS_OWNER)
    for grant in manifest.grants:
        option = " WITH GRANT OPTION" if grant.grantable else ""
        await connection.execute(f"GRANT {grant.privilege} ON {grant.target} TO {quoted(grant.role)}{option}")
    await connection.execute("RESET ROLE")


# -- files


async def _put_files(
    config: StorageConfig, stored: Stored, folder: str, archive: zipfile.ZipFile, done: Restored
) -> None:
    done.missing += stored.missing
    if not stored.files:
        return
    storage = Storage(config)
    try:
        for each in stored.files:
            if not stored.copied:
                try:
                    await storage.size_of(each.name)
                except ObjectNotFound:
                    done.not_found.append(each.name)
                continue
            with tempfile.TemporaryDirectory(dir=storage.folder.incoming if storage.folder else None) as scratch:
                copy = Path(scratch) / "file"
                await asyncio.to_thread(_extract, archive, f"{folder}/{each.name}", copy)
                await storage.move_in(each.name, copy)
            done.files += 1
    finally:
        await storage.close()


def _extract(archive: zipfile.ZipFile, name: str, file: Path) -> None:
    with archive.open(name) as member, file.open("wb") as copy:
        while piece := member.read(_PIECE):
            copy.write(piece)


# -- digests


async def _compare_rows(connection: "asyncpg.Connection[Any]", manifest: Manifest) -> None:
    async with connection.transaction(readonly=True):
        await set_text_format(connection)
        for table in manifest.tables:
            rows = RowDigest()

            async def take_piece(piece: bytes, rows: RowDigest = rows) -> None:
                rows.update(piece)

            await read_rows(connection, table, take_piece)
            if (rows.rows, rows.hexdigest()) != (table.rows, table.digest):
                raise RestoreFailed(f"The rows of {table.schema}.{table.name} are not those of the backup.")


async def _compare_files(to: Target, manifest: Manifest) -> None:
    for config, stored in ((to.files, manifest.files), (to.archive, manifest.archive)):
        if not stored.copied or not stored.files:
            continue
        storage = Storage(config)
        try:
            for each in stored.files:
                digest = hashlib.sha256()
                async for piece in storage.read(each.name):
                    digest.update(piece)
                if digest.hexdigest() != each.sha256:
                    raise RestoreFailed(f"The file {each.name} in {config.url} is not that of the backup.")
        finally:
            await storage.close()

"""The target of a restore before its rows come: empty or to be replaced, without other users, and marked."""

import asyncio
import os
import shutil
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg

from headrace.archive import heads
from headrace.backup import catalog
from headrace.backup.errors import RestoreFailed, TargetInUse, TargetNotEmpty
from headrace.backup.model import OURS, Manifest, Role, Stored, literal, quoted
from headrace.migrations import runner, unfinished
from headrace.storage import StorageConfig
from headrace.storage.folder import explain

LIST_OTHERS = """
SELECT DISTINCT application_name FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'headrace %' ORDER BY 1
"""


async def refuse_if_used(connection: "asyncpg.Connection[Any]") -> None:
    others = [row["application_name"] for row in await connection.fetch(LIST_OTHERS)]
    if others:
        shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise TargetInUse(f"This database is in use by {shown}: stop that first, then restore.")


# Migrations make one user, the system itself, who logs in nowhere.
HAS_DATA = """
SELECT EXISTS (SELECT FROM headrace.users WHERE id <> $1) OR EXISTS (SELECT FROM headrace.tasks)
    OR EXISTS (SELECT FROM headrace.audit_events)
"""
HAS_TABLES = "SELECT to_regclass('headrace.users') IS NOT NULL AND to_regclass('headrace.tasks') IS NOT NULL"
EXISTING_SCHEMAS = "SELECT nspname::text FROM pg_namespace WHERE nspname = ANY ($1)"


async def refuse_if_full(
    connection: "asyncpg.Connection[Any]", manifest: Manifest, storages: Collection[StorageConfig], *, system_user: str
) -> None:
    """Raise ``TargetNotEmpty`` where a restore would take something away. What an interrupted one left is nothing."""
    if await unfinished.is_marked(connection):
        return
    place = await connection.fetchval("SELECT current_database()")
    if await connection.fetchval(HAS_TABLES) and await connection.fetchval(HAS_DATA, system_user):
        raise TargetNotEmpty(
            f"The database {place} has users or tasks already: restore into an empty one, or let the backup take its "
            "place with --replace."
        )
    there = [row["nspname"] for row in await connection.fetch(EXISTING_SCHEMAS, manifest.schemas)]
    if there:
        raise TargetNotEmpty(f"The database {place} has a schema {there[0]} already: --replace drops it first.")
    for config in storages:
        if await asyncio.to_thread(_has_files, config):
            raise TargetNotEmpty(f"There are files in {config.url} already: --replace puts the backup in their place.")


def _folder_of(config: StorageConfig) -> Path | None:
    return Path(config.url.removeprefix("file://")) if config.url.startswith("file://") else None


def _has_files(config: StorageConfig) -> bool:
    folder = _folder_of(config)
    return folder is not None and any(files for _, _, files in os.walk(folder))


async def refuse_other_schemas(connection: "asyncpg.Connection[Any]", manifest: Manifest) -> None:
    """A program's schema that is not in the backup stands on tables that are about to be dropped."""
    others = [name for name in await catalog.list_own_schemas(connection) if name not in manifest.schemas]
    if others:
        raise TargetNotEmpty(
            f"The schema {others[0]} of this database is not in the backup, and its tables may refer to Headrace's: "
            f'save what you need of it, then drop it (DROP SCHEMA "{others[0]}" CASCADE).'
        )


async def clear_and_mark(connection: "asyncpg.Connection[Any]", manifest: Manifest, name: str) -> None:
    """Drop the old schemas and leave an empty one with the mark, in one transaction: the mark is never missing."""
    try:
        async with connection.transaction():
            await connection.execute("SET LOCAL lock_timeout = '10s'")
            for schema in manifest.schemas:
                await connection.execute(f"DROP SCHEMA IF EXISTS {quoted(schema)} CASCADE")
            await connection.execute(f"DROP SCHEMA IF EXISTS {OURS} CASCADE")
            await runner.prepare(connection)  # from here on as the owner
            await connection.execute(unfinished.MARK)
            await connection.execute(unfinished.DESCRIBE, name)
            await connection.execute("RESET ROLE")
    except asyncpg.LockNotAvailableError as exc:
        raise TargetInUse("Another session uses tables of this database: end it first, then restore.") from exc
    except asyncpg.InsufficientPrivilegeError as exc:
        raise RestoreFailed(
            f"The target's schemas cannot be dropped: {exc}. Name another user in HEADRACE_DATABASE_OWNER_URL."
        ) from exc


async def unmark(connection: "asyncpg.Connection[Any]") -> None:
    await connection.execute("SET ROLE headrace_owner")
    await connection.execute(unfinished.UNMARK)
    await connection.execute("RESET ROLE")


# -- roles

ROLE_EXISTS = "SELECT true FROM pg_roles WHERE rolname = $1"
MAY_BECOME = "SELECT pg_has_role($1, 'USAGE')"


async def make_roles(connection: "asyncpg.Connection[Any]", roles: Collection[Role]) -> list[str]:
    """Make the roles that are missing. Gives the names of those that cannot log in as they are."""
    closed = []
    database = await connection.fetchval("SELECT current_database()")
    try:
        for role in roles:
            if not await connection.fetchval(ROLE_EXISTS, role.name):
                how = "NOLOGIN"
                if role.owns_schema:
                    how = "LOGIN" + (f" PASSWORD {literal(role.verifier)}" if role.verifier else "")
                await connection.execute(f"CREATE ROLE {quoted(role.name)} {how}")
                if not role.verifier:
                    closed.append(role.name)
            if role.is_member:
                await connection.execute(f"GRANT headrace_app TO {quoted(role.name)}")
            if not role.owns_schema:
                continue
            if not await connection.fetchval(MAY_BECOME, role.name):
                await connection.execute(f"GRANT {quoted(role.name)} TO CURRENT_USER")
            await connection.execute(
                f"ALTER ROLE {quoted(role.name)} IN DATABASE {quoted(database)} SET search_path = {quoted(role.name)}"
            )
            await connection.execute(f"CREATE SCHEMA {quoted(role.name)} AUTHORIZATION {quoted(role.name)}")
    except asyncpg.InsufficientPrivilegeError as exc:
        names = ", ".join(role.name for role in roles)
        raise RestoreFailed(
            f"The backup has the roles {names}, and this user may not make them or act for them: {exc}. Let an "
            "administrator of the server restore, by HEADRACE_DATABASE_OWNER_URL."
        ) from exc
    return closed


# -- files


async def clear_storage(config: StorageConfig, stored: Stored) -> None:
    """Remove the folder's contents, before the backup's files come. The heads of the audit trail are evidence, and
    kept under another name; those of a bucket stay where they are."""
    folder = _folder_of(config)
    if folder is None or not stored.copied or not folder.exists():
        return
    try:
        await asyncio.to_thread(_clear, folder)
    except OSError as exc:
        raise explain(exc, config.url) from exc


def _clear(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.name == heads.FOLDER:
            entry.rename(folder / f"{heads.FOLDER}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
        elif entry.name.startswith(f"{heads.FOLDER}.replaced-"):
            continue
        elif entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()

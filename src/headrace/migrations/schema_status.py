"""Where a database stands against what this program knows, and whether the program can run on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from headrace.database import Database, DatabaseConfig, Tx, connect_alone
from headrace.database_errors import SchemaMissing
from headrace.errors import Conflict
from headrace.migrations import definitions, files, unfinished
from headrace.migrations.definitions import Definition, Stale
from headrace.migrations.files import Migration


class SchemaTooNew(Conflict):
    """The database is newer than this program: update the program."""

    code = "schema_too_new"


class SchemaBehind(Conflict):
    """The database is older than this program: run `headrace migrate`."""

    code = "schema_behind"


class SchemaSquashed(Conflict):
    """The database was made by files that are no longer there."""

    code = "schema_squashed"


@dataclass(frozen=True, slots=True)
class Applied:
    number: int
    name: str
    checksum: str
    applied_at: datetime
    needs: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """Where a database stands against what this program knows."""

    applied: tuple[Applied, ...]
    pending: tuple[Migration, ...]
    unknown: tuple[Applied, ...]  # applied by a newer program
    changed: tuple[Applied, ...]  # applied, but the file has been edited since
    stale: Stale  # functions, triggers and views that are missing or of another version

    @property
    def current(self) -> int:
        return max((entry.number for entry in self.applied), default=0)

    @property
    def is_newer(self) -> bool:
        """Whether a newer program has migrated it: then its functions, triggers and views are left as they are."""
        return bool(self.unknown) or self.stale.revision > definitions.revision()


FIND_BOOKS = "SELECT to_regclass('headrace.schema_migrations') IS NOT NULL"
FIND_FORMER = (
    "SELECT EXISTS (SELECT FROM headrace.schema_migrations) AND to_regclass('headrace.schema_definitions') IS NULL"
)
# Earlier programs did not book what a migration needs.
LIST_APPLIED = """
SELECT number, name, checksum, applied_at, coalesce((to_jsonb(booked) ->> 'needs')::integer, 0) AS needs
FROM headrace.schema_migrations AS booked
ORDER BY number
"""


async def read_status(connection: "asyncpg.Connection[Any] | Tx", *, restoring: bool = False) -> Status:
    """Where the database of this connection stands; ``RestoreUnfinished`` for all but the restore itself."""
    if not restoring:
        await unfinished.refuse_if_marked(connection)
    rows = await connection.fetch(LIST_APPLIED) if await connection.fetchval(FIND_BOOKS) else []
    if rows and await connection.fetchval(FIND_FORMER):
        raise SchemaSquashed(
            "This database was made by a development version whose migrations have since become one baseline, and "
            "cannot be carried over: make a new one (another HEADRACE_DATA_DIR or database), or keep to that version."
        )
    applied = tuple(Applied(**row) for row in rows)
    known = {migration.number: migration for migration in files.available()}
    done = {entry.number for entry in applied}
    return Status(
        applied=applied,
        pending=tuple(migration for migration in files.available() if migration.number not in done),
        unknown=tuple(entry for entry in applied if entry.number not in known),
        changed=tuple(
            entry for entry in applied if entry.number in known and entry.checksum != known[entry.number].checksum
        ),
        stale=await definitions.read_stale(connection),
    )


# All that may keep a process from serving, in one round trip. As a text: for an array the driver asks about its type.
READ_READINESS = f"""
SELECT (SELECT string_agg(number::text, ' ') FROM headrace.schema_migrations) AS applied,
       ({unfinished.IS_MARKED}) OR to_regclass('headrace.schema_definitions') IS NULL AS is_odd
"""


async def count_pending(db: Database) -> int:
    """How many migrations are missing; raises like ``read_status``, which it asks where anything is out of order."""
    try:
        (row,) = await db.fetch_alone(READ_READINESS)
    except SchemaMissing:
        row = None
    if row is None or row["is_odd"]:
        async with db.transaction(readonly=True) as tx:
            return len((await read_status(tx)).pending)
    return len(
        {migration.number for migration in files.available()}.difference(map(int, (row["applied"] or "").split()))
    )


async def status(config: DatabaseConfig) -> Status:
    """Look, and change nothing."""
    async with connect_alone(config) as connection:
        return await read_status(connection)


def refuse_too_new(found: Status) -> None:
    """Raise ``SchemaTooNew`` if a newer program has removed something that this one uses."""
    newest = files.available()[-1]
    for entry in found.unknown:
        if entry.needs > newest.number:
            raise SchemaTooNew(
                f"The database is at {found.unknown[-1].number:04}_{found.unknown[-1].name}, which needs a program "
                f"that knows migration {entry.needs:04}, and this one knows {newest} at most: update the program, or "
                "name another database."
            )


async def verify_current(config: DatabaseConfig) -> None:
    """Raise unless this program can run on the database."""
    require_current(await status(config))


def require_current(found: Status) -> None:
    """Raise ``SchemaTooNew`` or ``SchemaBehind`` unless all that this program needs is applied.

    Migrations of a newer program are no obstacle as long as they only add (``Migration.needs``): so a release runs
    beside the next one, and can be started again after it.
    """
    refuse_too_new(found)
    if found.pending:
        raise SchemaBehind(
            f"{len(found.pending)} migrations are missing, from {found.pending[0]}: run `headrace migrate`."
        )
    if found.stale and not found.is_newer:
        raise SchemaBehind(
            f"What it has of {names_of(list(found.stale))} is not this program's: run `headrace migrate`."
        )


def names_of(changed: Sequence[Definition]) -> str:
    shown = ", ".join(str(one) for one in changed[:3])
    return f"{shown} and {len(changed) - 3} more" if len(changed) > 3 else shown

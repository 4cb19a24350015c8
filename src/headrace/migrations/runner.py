"""Moves a database up and down the migrations, one process at a time.

Every run holds a session-level advisory lock, so ten processes that start at once migrate once. Each file is one
transaction with a short ``lock_timeout``, tried again for a while (turns.py): a migration that would have to wait for a
busy table gives up instead of making everybody queue behind it. New functions come first, for tables rest on them; then
the migrations; then functions that changed, triggers and views (definitions.py).

Through a transaction pooler there is no session to hold a lock or a setting: there, everything is one transaction.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg

from headrace import logs
from headrace.database import DatabaseConfig, connect_alone
from headrace.errors import Invalid, Unavailable
from headrace.migrations import definitions, files
from headrace.migrations.definitions import Definition
from headrace.migrations.files import Migration, in_transaction, statements
from headrace.migrations.months import month_by_month
from headrace.migrations.schema_status import (
    FIND_BOOKS,
    SchemaTooNew,
    names_of,
    read_status,
    refuse_too_new,
    require_current,
)
from headrace.migrations.turns import in_turn, limit_waiting

log = logs.get(__name__)


def _note(step: str) -> None:
    log.info(step)  # looked up when it is called: a command that only reads the version loads no logging


OLDEST_SERVER = 15
_ADVISORY_KEY = 0x48656164_72616365  # "Headrace"
# For one statement of a migration. None would not mean "none" to asyncpg, but the connection's own limit of seconds.
_NO_LIMIT_S = 30 * 86400.0

Report = Callable[[str], None]


class MigrationRefused(Invalid):
    """The database cannot be migrated as it is."""

    code = "migration_refused"


class MigrationBusy(Unavailable):
    """The tables are in use or another process migrates; try again in a moment."""

    code = "migration_busy"


async def migrate(
    config: DatabaseConfig,
    *,
    to: int | None = None,
    lock_timeout: timedelta,
    report: Report = _note,
    restoring: bool = False,
) -> list[Migration]:
    """Apply what is missing, up to and including ``to``; gives what was done. Safe to call from many processes."""
    target = _target(to, default=files.available()[-1].number)
    async with _alone(config) as connection:
        found = await read_status(connection, restoring=restoring)
        refuse_too_new(found)
        if found.is_newer:
            require_current(found)
            report("the schema is of a newer release, and has all that this program needs")
            return []
        todo = [migration for migration in found.pending if migration.number <= target]
        behind = found.stale.revision < definitions.revision()
        if todo or found.stale or behind:  # where nothing is to do, no rights are needed for it either
            await prepare(connection)
        await _define(connection, found.stale.new_functions, lock_timeout, prefix=definitions.BEFORE_TABLES)
        for migration in todo:
            report(f"migrating up {migration}")
            await _run(connection, migration, migration.up, BOOK, _booking(migration), lock_timeout=lock_timeout)
        others = await definitions.possible(connection, found.stale.others) if found.stale.others else []
        if others:
            report(f"defining {names_of(others)}")
        await _define(connection, others, lock_timeout)
        if behind:
            await connection.execute(definitions.numbering())
        await _look_ahead(connection)
        return todo


async def roll_back(
    config: DatabaseConfig, *, to: int | None = None, lock_timeout: timedelta, report: Report = _note
) -> list[Migration]:
    """Undo migrations down to but not including ``to``, or just the newest; to 0 leaves nothing of ours behind."""
    async with _alone(config) as connection:
        if not await connection.fetchval(FIND_BOOKS):
            return []
        found = await read_status(connection)
        refuse_too_new(found)
        if found.is_newer:
            raise SchemaTooNew(
                "A newer program has migrated this database, and only that one knows the way back: run its "
                "`headrace migrate --down`. This program may run on the schema as it is."
            )
        await prepare(connection)
        target = _target(to, default=found.current - 1)
        done = {entry.number for entry in found.applied}
        todo = [m for m in reversed(files.available()) if m.number in done and m.number > target]
        earlier = await definitions.read_earlier(connection, target)
        if target:
            # First: the present ones use what the migrations drop, and processes are calling them.
            await _put_back(connection, earlier, earlier.functions, lock_timeout)
        for migration in todo:
            report(f"migrating down {migration}")
            await _run(connection, migration, migration.down, UNBOOK, (migration.number,), lock_timeout=lock_timeout)
        if target == 0:
            await connection.execute(CLOSE_BOOKS)
        else:
            await _put_back_others(connection, earlier, lock_timeout)
        return todo


async def _put_back_others(
    connection: "asyncpg.Connection[Any]", earlier: definitions.Earlier, lock_timeout: timedelta
) -> None:
    """Triggers and views as they were, as far as their tables are there and their texts were kept."""
    possible = set(await definitions.possible(connection, [former.definition for former in earlier.others]))
    await _put_back(
        connection, earlier, [former for former in earlier.others if former.definition in possible], lock_timeout
    )
    gone = [(one.kind, one.name) for one in (former.definition for former in earlier.others) if one not in possible]
    for kind, name in (*gone, *earlier.unknown):
        await connection.execute(definitions.FORGET, kind, name)
    await connection.execute(definitions.RENUMBER, earlier.revision)


async def _put_back(
    connection: "asyncpg.Connection[Any]",
    earlier: definitions.Earlier,
    formers: Sequence[definitions.Former],
    lock_timeout: timedelta,
) -> None:
    try:
        await in_turn(connection, lambda: definitions.put_back(connection, earlier, formers), lock_timeout)
    except asyncpg.PostgresError as exc:
        raise _migration_error(
            names_of([former.definition for former in formers]), exc, left="nothing was changed"
        ) from exc


# -- below: one connection, one file


@asynccontextmanager
async def _alone(config: DatabaseConfig) -> AsyncIterator["asyncpg.Connection[Any]"]:
    async with connect_alone(config) as connection:
        version = connection.get_server_version()
        if version.major < OLDEST_SERVER:
            raise MigrationRefused(
                f"PostgreSQL at {config.place} is version {version.major}; Headrace needs {OLDEST_SERVER} or newer."
            )
        if config.pooled:
            async with connection.transaction():
                await _take_turn(connection, "pg_try_advisory_xact_lock")
                yield connection
                await connection.execute(LEAVE_NO_TRACE)
        else:
            await _take_turn(connection, "pg_try_advisory_lock")
            yield connection


# Behind a pooler, other clients use this server connection after us: undo the settings of the migration.
LEAVE_NO_TRACE = """
RESET ROLE; RESET statement_timeout; RESET lock_timeout; RESET headrace.level_before; RESET headrace.revision_before
"""


async def _take_turn(connection: "asyncpg.Connection[Any]", lock: str) -> None:
    # Polled rather than waited for: lock_timeout and statement_timeout would count for the wait as well.
    for _ in range(600):
        if await connection.fetchval(f"SELECT {lock}($1)", _ADVISORY_KEY):
            return
        await asyncio.sleep(0.1)
    raise MigrationBusy("Another process has been migrating this database for a minute; look at that one first.")


# Roles belong to the whole cluster and are never dropped: its other databases may stand on them.
# The owner's role owns every table, for every migrating user: a superuser's tables would be out of the product's reach.
PREPARE = (
    """
DO $$
DECLARE
  role_name text;
BEGIN
  FOREACH role_name IN ARRAY ARRAY['headrace_owner', 'headrace_app'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role_name) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL; -- another database of this cluster is being migrated at the same moment
      END;
    END IF;
  END LOOP;
  IF current_user <> 'headrace_owner' THEN
    -- From PostgreSQL 16 on, whoever creates a role is a member who may administer it, and yet not become it.
    IF NOT pg_has_role(current_user, 'headrace_owner',
                       CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END) THEN
      EXECUTE format('GRANT headrace_owner TO %I', current_user);
    END IF;
    EXECUTE format('GRANT CREATE ON DATABASE %I TO headrace_owner', current_database());
    SET ROLE headrace_owner;
  END IF;
END $$;
CREATE SCHEMA IF NOT EXISTS headrace;
COMMENT ON SCHEMA headrace IS 'Headrace. SQL names everything in full, so that no search_path is needed.';
CREATE TABLE IF NOT EXISTS headrace.schema_migrations (
  number     integer     PRIMARY KEY,
  name       varchar(64) NOT NULL,
  checksum   char(64)    NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  needs      integer     NOT NULL DEFAULT 0
);
ALTER TABLE headrace.schema_migrations ADD COLUMN IF NOT EXISTS needs integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN headrace.schema_migrations.needs IS 'The migration that programs must know to run after this one.';
COMMENT ON TABLE headrace.schema_migrations IS 'Which migrations this database has; written by headrace migrate.';
CREATE TABLE IF NOT EXISTS headrace.schema_definitions (
  kind       varchar(16) NOT NULL,
  name       varchar(64) NOT NULL,
  checksum   char(64)    NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  revision   integer     NOT NULL DEFAULT 0,
  text       text,
  former     jsonb       NOT NULL DEFAULT '[]',
  PRIMARY KEY (kind, name)
);
ALTER TABLE headrace.schema_definitions
  ADD COLUMN IF NOT EXISTS revision integer NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS text text,
  ADD COLUMN IF NOT EXISTS former jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN headrace.schema_definitions.former IS 'Replaced texts, each with the newest migration of its time.';
COMMENT ON TABLE headrace.schema_definitions IS 'Which functions, triggers and views; written by headrace migrate.';
GRANT USAGE ON SCHEMA headrace TO headrace_app;
GRANT SELECT ON headrace.schema_migrations, headrace.schema_definitions TO headrace_app;
"""
    + definitions.NOTE_LEVEL
)


async def prepare(connection: "asyncpg.Connection[Any]") -> None:
    """Make the roles and the empty schema, and act as the owner from here on."""
    try:
        await connection.execute(PREPARE)
    except asyncpg.InsufficientPrivilegeError as exc:
        raise MigrationRefused(
            "This user may not create the roles headrace_owner and headrace_app, or a schema in this database. Name "
            "one who may in HEADRACE_DATABASE_OWNER_URL, or let an administrator run: CREATE ROLE headrace_owner; "
            "CREATE ROLE headrace_app; GRANT headrace_owner TO <user>; GRANT CREATE ON DATABASE <database> TO "
            "headrace_owner;"
        ) from exc


CLOSE_BOOKS = (
    f"{definitions.removal()}DROP TABLE headrace.schema_definitions, headrace.schema_migrations; DROP SCHEMA headrace;"
)
# Every start of `headrace up` and every `headrace migrate` comes by here: months are made before they are needed.
MISSING_MONTHS = """
SELECT parent.oid::regclass::text AS parent
FROM pg_partitioned_table AS partitioned
JOIN pg_class AS parent ON parent.oid = partitioned.partrelid
WHERE parent.relnamespace = to_regnamespace('headrace') AND pg_has_role(current_user, parent.relowner, 'USAGE')
  AND to_regclass('headrace.' || parent.relname || to_char(now() + interval '3 months', '"_y"YYYY"m"MM')) IS NULL
ORDER BY 1
"""
MAKE_MONTHS = "SELECT headrace.create_month_partitions($1::regclass, now()::date, (now() + interval '3 months')::date)"


async def _look_ahead(connection: "asyncpg.Connection[Any]") -> None:
    for row in await connection.fetch(MISSING_MONTHS):
        try:
            async with connection.transaction():
                await connection.execute("SET LOCAL lock_timeout = '2s'")
                await connection.execute(MAKE_MONTHS, row["parent"])
        except asyncpg.PostgresError as exc:
            # Three months are left for the next try, and what has no partition lands in the default one.
            log.warning("partitions.not_made", parent=row["parent"], error=str(exc))


BOOK = "INSERT INTO headrace.schema_migrations (number, name, checksum, needs) VALUES ($1, $2, $3, $4)"
UNBOOK = "DELETE FROM headrace.schema_migrations WHERE number = $1"


def _booking(migration: Migration) -> tuple[object, ...]:
    return migration.number, migration.name, migration.checksum, migration.needs


async def _define(
    connection: "asyncpg.Connection[Any]", changed: Sequence[Definition], lock_timeout: timedelta, *, prefix: str = ""
) -> None:
    if not changed:
        return

    async def define() -> None:
        await connection.execute(prefix + definitions.creation(changed), timeout=_NO_LIMIT_S)

    try:
        await in_turn(connection, define, lock_timeout)
    except asyncpg.PostgresError as exc:
        raise _migration_error(names_of(changed), exc, left="nothing was changed") from exc


async def _run(
    connection: "asyncpg.Connection[Any]",
    migration: Migration,
    text: str,
    book: str,
    booking: tuple[object, ...],
    *,
    lock_timeout: timedelta,
) -> None:
    async def run() -> None:
        await connection.execute(text, timeout=_NO_LIMIT_S)
        await connection.execute(book, *booking)

    try:
        # A migration may rightly take long; what it must not do is wait long for others.
        if in_transaction(text):
            await in_turn(connection, run, lock_timeout)
        else:
            await connection.execute(f"SET statement_timeout = 0; {limit_waiting(lock_timeout)}")
            if connection.is_in_transaction():
                raise MigrationRefused(
                    f"{migration} cannot run through a pooler: set HEADRACE_DATABASE_OWNER_URL to PostgreSQL itself."
                )
            for statement in statements(text):
                await _run_alone(connection, statement, lock_timeout)
            await connection.execute(book, *booking)
    except asyncpg.PostgresError as exc:
        left = "nothing was changed" if in_transaction(text) else "what it had done stays: run it again"
        raise _migration_error(str(migration), exc, left=left) from exc


def _migration_error(what: str, error: asyncpg.PostgresError, *, left: str) -> MigrationBusy | MigrationRefused:
    if isinstance(error, (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)):
        return MigrationBusy(f"{what} needs a table that is in use; {left}: try again in a moment.")
    return MigrationRefused(f"{what} failed, and {left}: {error}")


async def _run_alone(connection: "asyncpg.Connection[Any]", statement: str, lock_timeout: timedelta) -> None:
    if (parts := month_by_month(statement)) is None:
        await _execute(connection, statement, lock_timeout)
        return
    parent, months = parts
    await _execute(connection, parent, lock_timeout)
    for month in await connection.fetch(months):
        for each in month:
            await _execute(connection, each, lock_timeout)


# Such a statement waits for open transactions while others read and write. Aborted by a lock_timeout, it would
# have to start over each time: on a busy database, for ever.
_CONCURRENTLY = re.compile(r"^(CREATE (UNIQUE )?|DROP )INDEX CONCURRENTLY ", re.MULTILINE)


async def _execute(connection: "asyncpg.Connection[Any]", statement: str, lock_timeout: timedelta) -> None:
    limit = timedelta(0) if _CONCURRENTLY.search(statement) else lock_timeout
    await connection.execute(limit_waiting(limit))
    await connection.execute(statement, timeout=_NO_LIMIT_S)


def _target(to: int | None, *, default: int) -> int:
    if to is None:
        return default
    if not 0 <= to <= files.available()[-1].number:
        raise MigrationRefused(f"There is no migration {to}; this program knows 1 to {files.available()[-1].number}.")
    return to

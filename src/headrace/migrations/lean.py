"""Two indexes of ``tasks`` that an operator may do without, and the way back.

Document 002 asks for them, so the migrations make them. Each contains ``status``, so the end of a task is no HOT
update: PostgreSQL writes an entry into every index of the table. Without them, and with room left on each page, the
end of a task writes into no index.
"""

from dataclasses import dataclass

import asyncpg

from headrace.database import DatabaseConfig, connect_alone
from headrace.errors import Unavailable

# As 0006_tasks.up.sql makes them; a test compares.
INDEXES = {
    "idx_tasks_status_updated_at": "(status, updated_at DESC)",
    "idx_tasks_user_status_created_at": "(user_id, status, created_at DESC)",
}
_ROOM = "ALTER TABLE headrace.tasks SET (fillfactor = 50)"
_NO_ROOM = "ALTER TABLE headrace.tasks RESET (fillfactor)"
_LIMITS = "SET lock_timeout = '5s'; SET statement_timeout = 0"  # building an index takes as long as it takes
_FIND = """
SELECT class.relname AS name, index.indisvalid AS valid, pg_relation_size(class.oid) AS bytes
FROM pg_index AS index JOIN pg_class AS class ON class.oid = index.indexrelid
WHERE index.indrelid = 'headrace.tasks'::regclass AND class.relname = ANY ($1)
"""


class IndexesBusy(Unavailable):
    """The table is in use by a long transaction: nothing was lost, run the command again."""

    code = "indexes_busy"


@dataclass(frozen=True, slots=True)
class IndexState:
    """One of the two: its size, None where it is dropped; not valid while it is built, or when that was interrupted."""

    name: str
    bytes: int | None
    valid: bool


async def read(config: DatabaseConfig) -> list[IndexState]:
    async with connect_alone(config) as connection:
        return await _read(connection)


async def drop(config: DatabaseConfig) -> list[IndexState]:
    """Drop both, without blocking reads or writes. Idempotent. Pages written from now on keep room for HOT updates."""
    async with connect_alone(config) as connection:
        await connection.execute(_LIMITS)
        try:
            for name in INDEXES:
                await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS headrace.{name}")
            await connection.execute(_ROOM)
        except asyncpg.LockNotAvailableError as exc:
            raise IndexesBusy from exc
        return await _read(connection)


async def restore(config: DatabaseConfig) -> list[IndexState]:
    """Make both again, without blocking reads or writes. Idempotent. Replaces an index that an interrupted run left."""
    async with connect_alone(config) as connection:
        await connection.execute(_LIMITS)
        try:
            for state in await _read(connection):
                if state.bytes is not None and not state.valid:
                    await connection.execute(f"DROP INDEX CONCURRENTLY headrace.{state.name}")
                await connection.execute(
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {state.name} ON headrace.tasks {INDEXES[state.name]}"
                )
            await connection.execute(_NO_ROOM)
        except asyncpg.LockNotAvailableError as exc:
            raise IndexesBusy from exc
        return await _read(connection)


async def _read(connection: "asyncpg.Connection[asyncpg.Record]") -> list[IndexState]:
    found = {row["name"]: row for row in await connection.fetch(_FIND, list(INDEXES))}
    return [
        IndexState(name, found[name]["bytes"] if name in found else None, name in found and found[name]["valid"])
        for name in INDEXES
    ]

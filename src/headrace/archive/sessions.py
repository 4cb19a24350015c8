"""Sessions outside the pool: for work on whole months, and for the owner of the tables."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias

import asyncpg

from headrace.archive.errors import OwnerNeeded
from headrace.database import DatabaseConfig, connect_alone

# From PostgreSQL 16 on, a member may still not be allowed to become the role.
MAY_BECOME_OWNER = """
SELECT pg_has_role(current_user, 'headrace_owner',
                   CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END)
"""
# A month is read and written in many short statements; one of them may still be a long DROP or CREATE INDEX.
_STATEMENT_LIMIT = timedelta(minutes=10)
# The pool of a worker has a far shorter one: here a file is compressed while the transaction of a cursor is open.
_IDLE_LIMIT = timedelta(minutes=2)
_PING_EVERY_S = 10.0

Connection: TypeAlias = "asyncpg.Connection[Any]"


@asynccontextmanager
async def session(config: DatabaseConfig) -> AsyncIterator[Connection]:
    """A connection of its own for work that takes minutes."""
    limits = replace(
        config, role="retention", statement_timeout=_STATEMENT_LIMIT, idle_in_transaction_timeout=_IDLE_LIMIT
    )
    async with connect_alone(limits) as connection:
        yield connection


@asynccontextmanager
async def as_owner(config: DatabaseConfig) -> AsyncIterator[Connection]:
    """A session as ``headrace_owner``; ``OwnerNeeded`` for a user who cannot become that role."""
    async with session(config) as connection:
        if config.pooled:
            raise OwnerNeeded("This needs a session: set HEADRACE_DATABASE_OWNER_URL to PostgreSQL itself.")
        if not await connection.fetchval(MAY_BECOME_OWNER):
            user = await connection.fetchval("SELECT current_user")
            raise OwnerNeeded(
                f"{user} may not make or drop tables: set HEADRACE_DATABASE_OWNER_URL to a member of headrace_owner "
                "for this command."
            )
        # New objects, such as a restored table, belong to the product and not to the user of the session.
        await connection.execute("SET ROLE headrace_owner")
        yield connection


@asynccontextmanager
async def try_lock(config: DatabaseConfig, connection: Connection, key: str) -> AsyncIterator[bool]:
    """Hold an advisory lock; gives whether it was free.

    A pooler gives every transaction another connection, so there the lock is that of one transaction which stays open.
    """
    if not config.pooled:
        locked: bool = await connection.fetchval("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", key)
        try:
            yield locked
        finally:
            if locked and not connection.is_closed():
                await connection.execute("SELECT pg_advisory_unlock(hashtextextended($1, 0))", key)
        return
    async with session(config) as holder, holder.transaction():
        locked = await holder.fetchval("SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))", key)
        pinging = asyncio.create_task(_ping(holder))
        try:
            yield locked
        finally:
            pinging.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await pinging


async def _ping(connection: Connection) -> None:
    """Keep an open transaction from being ended because it is idle."""
    while True:
        await asyncio.sleep(_PING_EVERY_S)
        await connection.execute("SELECT 1")

"""The owner's connection: the only one that may take months out of a table."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias

import asyncpg

from headrace.database import DatabaseConfig, connect_alone
from headrace.operations.errors import OwnerNeeded

# From PostgreSQL 16 on, a member may still not be allowed to become the role.
MAY_BECOME_OWNER = """
SELECT pg_has_role(current_user, 'headrace_owner',
                   CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END)
"""
# A month is read and written in many short statements; one of them may still be a long DROP or CREATE INDEX.
_STATEMENT_LIMIT = timedelta(minutes=10)

Connection: TypeAlias = "asyncpg.Connection[Any]"


@asynccontextmanager
async def as_owner(config: DatabaseConfig) -> AsyncIterator[Connection]:
    """A session as ``headrace_owner``; ``OwnerNeeded`` for whoever may not be that."""
    async with connect_alone(replace(config, role="retention", statement_timeout=_STATEMENT_LIMIT)) as connection:
        if config.pooled:
            raise OwnerNeeded("Retiring needs a session: set HEADRACE_DATABASE_OWNER_URL to PostgreSQL itself.")
        if not await connection.fetchval(MAY_BECOME_OWNER):
            user = await connection.fetchval("SELECT current_user")
            raise OwnerNeeded(
                f"{user} may not retire months: set HEADRACE_DATABASE_OWNER_URL to a member of headrace_owner."
            )
        # What is made here, such as a restored table, belongs to the product and not to whoever happened to ask.
        await connection.execute("SET ROLE headrace_owner")
        yield connection

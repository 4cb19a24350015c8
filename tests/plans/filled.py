"""A database with many rows of our own making, for as long as a module's tests run."""

import asyncio
import os
from collections.abc import Iterator

import asyncpg

from tests.conftest import TestServer


def filled(server: TestServer, template: str, rows: int, sql: str, *, name: str) -> Iterator[str]:
    """Its name. ``:rows`` in the SQL is the number of rows; triggers and foreign keys are off while it runs."""
    name = f"headrace_test_{os.getpid()}_{name}_{rows}"

    async def make() -> None:
        await server.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        connection = await asyncpg.connect(server.url(name))
        try:
            async with connection.transaction():
                await connection.execute("SET LOCAL session_replication_role = replica")
                await connection.execute(sql.replace(":rows", str(rows)))
        finally:
            await connection.close()
        await server.run("VACUUM ANALYZE", database=name)

    asyncio.run(make())
    yield name
    asyncio.run(server.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))

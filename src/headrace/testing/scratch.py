"""Databases for tests: a migrated template, created once on a test server, and temporary copies of it."""

import asyncio
import hashlib
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import asyncpg

from headrace import embedded_postgres, migrations
from headrace.database import DatabaseConfig
from headrace.embedded_postgres.processes import exists
from headrace.migrations import definitions, script
from headrace.migrations.definitions import Stale

# Scratch databases are small and need no durability.
FAST_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "shared_buffers": "128MB",
    "max_connections": "300",
    "autovacuum": "off",
}
_APP = "headrace_app"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class ScratchDatabase:
    """A database with Headrace's schema, for one test."""

    url: str
    """The URL with Headrace's restricted role, for any library."""
    superuser_url: str
    """The URL with a superuser, for your own tables."""


@dataclass(frozen=True)
class ScratchServer:
    """A PostgreSQL server for tests."""

    superuser_url: str

    def url(self, database: str, *, role: str | None = None) -> str:
        """The URL of one of its databases, optionally with ``SET ROLE``."""
        options = urlencode({"options": f"-c role={role}"}, quote_via=quote) if role else ""
        return urlunsplit(urlsplit(self.superuser_url)._replace(path=f"/{database}", query=options))

    async def execute(self, sql: str, *, database: str = "postgres") -> None:
        """Run statements as a superuser."""
        connection = await asyncpg.connect(self.url(database))
        try:
            await connection.execute(sql)
        finally:
            await connection.close()


@contextmanager
def scratch_server(folder: Path, *, given: str | None) -> Iterator[ScratchServer]:
    """The server at the given URL; otherwise an embedded one in the folder, which later runs reuse."""
    if given is not None:
        yield ScratchServer(given)
        return
    config = embedded_postgres.EmbeddedConfig(data_dir=folder, settings=FAST_SETTINGS)
    with embedded_postgres.attach(config) as running:
        yield ScratchServer(running.superuser_url)


def schema() -> str:
    """The SQL of all migrations and functions."""
    return script.render(migrations.available(), stale=Stale(others=definitions.known()))


async def make_template(server: ScratchServer, *, own_sql: str = "", own: bool) -> str:
    """Create a migrated template database with the tables of ``own_sql``; once for each state of both.

    Returns its name. ``own``: the server is used only by these tests, so outdated templates are dropped.
    """
    migrated = f"headrace_template_{_digest(schema())}"
    connection = await asyncpg.connect(server.superuser_url)
    try:
        # Other test processes wait here, and then find the template.
        await connection.execute("SELECT pg_advisory_lock(4711)")
        if not await _is_template(connection, migrated):
            await _drop_leftovers(connection)
            if own:
                await _drop_templates(connection)
                await _make_signing_in_quick(connection, urlsplit(server.superuser_url).password or "")
            await connection.execute(f"CREATE DATABASE {migrated}")
            await migrations.migrate(
                DatabaseConfig(server.url(migrated)), lock_timeout=timedelta(seconds=5), report=lambda _: None
            )
            # The first connection writes the catalog's hint bits, which copies inherit.
            await server.execute("SELECT 1", database=migrated)
            await _close_template(connection, migrated)
        name = f"{migrated}_{_digest(own_sql)}" if own_sql else migrated
        if not await _is_template(connection, name):
            await connection.execute(f"DROP DATABASE IF EXISTS {name}")  # left by a failed run of its SQL
            await connection.execute(f"CREATE DATABASE {name} TEMPLATE {migrated} STRATEGY file_copy")
            await server.execute(own_sql, database=name)
            await _close_template(connection, name)
        return name
    finally:
        await connection.close()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


async def _is_template(connection: "asyncpg.Connection[Any]", name: str) -> bool:
    return bool(await connection.fetchval("SELECT true FROM pg_database WHERE datname = $1 AND datistemplate", name))


async def _close_template(connection: "asyncpg.Connection[Any]", name: str) -> None:
    await connection.execute(f"ALTER DATABASE {name} IS_TEMPLATE true ALLOW_CONNECTIONS false")


async def _make_signing_in_quick(connection: "asyncpg.Connection[Any]", password: str) -> None:
    """Set one SCRAM iteration instead of 4096, because a run opens thousands of connections."""
    if connection.get_server_version().major >= 16:
        quoted = await connection.fetchval("SELECT quote_literal($1::text)", password)
        await connection.execute(f"SET scram_iterations = 1; ALTER ROLE CURRENT_USER PASSWORD {quoted}")


async def _drop_leftovers(connection: "asyncpg.Connection[Any]") -> None:
    """Drop databases of killed runs."""
    for row in await connection.fetch(r"SELECT datname FROM pg_database WHERE datname ~ '^headrace_test_\d+_'"):
        name: str = row["datname"]
        if not exists(int(name.split("_")[2])):
            await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


async def _drop_templates(connection: "asyncpg.Connection[Any]") -> None:
    """Drop templates of other migrations."""
    for row in await connection.fetch("SELECT datname FROM pg_database WHERE datname ~ '^headrace_template_'"):
        await connection.execute(f"ALTER DATABASE {row['datname']} IS_TEMPLATE false")
        await connection.execute(f"DROP DATABASE {row['datname']}")


@contextmanager
def scratch_database(server: ScratchServer, template: str) -> Iterator[ScratchDatabase]:
    """A copy of the template, dropped at the end even with open connections."""
    name = f"headrace_test_{os.getpid()}_{next(_numbers)}"
    asyncio.run(server.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"))
    try:
        yield ScratchDatabase(server.url(name, role=_APP), server.url(name))
    finally:
        asyncio.run(server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))

"""A PostgreSQL for measuring: the embedded one, durable (fsync and synchronous_commit on), thrown away afterwards."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import asyncpg

from headrace import embedded_postgres, migrations
from headrace.database import DatabaseConfig


@contextmanager
def scratch_server() -> Iterator[str]:
    """The URL of a migrated database of a fresh server, as a superuser: resetting between rounds needs one."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        config = embedded_postgres.EmbeddedConfig(
            data_dir=Path(folder),
            settings={
                "shared_buffers": "1GB",
                "max_wal_size": "8GB",
                "min_wal_size": "2GB",
                "checkpoint_timeout": "30min",
            },
        )
        with embedded_postgres.attach(config) as server:
            asyncio.run(
                migrations.migrate(
                    DatabaseConfig(server.owner_url), lock_timeout=timedelta(seconds=5), report=lambda _: None
                )
            )
            yield f"{server.superuser_url.rpartition('/')[0]}/headrace"


# Triggers guard the ledger and the audit trail against TRUNCATE; between rounds of a scratch database that is in order.
RESET = """
SET session_replication_role = replica;
TRUNCATE headrace.tasks, headrace.task_queue, headrace.task_logs, headrace.workers CASCADE;
SET session_replication_role = origin;
"""


async def reset(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(RESET)
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


async def analyze(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for table in ("tasks", "task_queue", "task_logs"):
            await connection.execute(f"VACUUM ANALYZE headrace.{table}")
        # What loading left behind is written now, and not while somebody is measured.
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()

"""Rows that are deleted one batch at a time, written to the archive before they go.

A batch is a Parquet file: written, stored, fetched back and compared, and only then are its rows deleted, in the
transaction that notes the file in ``headrace.row_archives``. So every deleted row is in a recorded file. A process
killed in between leaves an unrecorded file, and the rows: the next run writes them again, and none is lost.

No transaction is open while the file travels. ``xmin`` shows whether a row changed meanwhile: one that is no
longer the version that was written stays, and goes with a later batch.
"""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from headrace import ids
from headrace.archive import parquet, store
from headrace.archive.errors import ArchiveDamaged
from headrace.archive.model import RowTable, Summary
from headrace.database import Database, Tx
from headrace.extras import load
from headrace.purging import RowRetention
from headrace.storage import Storage

BATCH = 20_000  # rows of a file: small enough for memory, large enough for a bucket

Step = Callable[[str], None]


def _no_step(_: str) -> None:
    """Reports nothing."""


async def archive_rows(
    db: Database, storage: Storage, rule: RowRetention, line: datetime, *, batch: int = BATCH, on_step: Step = _no_step
) -> tuple[int, bool]:
    """One batch of rows that ended before ``line``: gives how many rows went, and whether there may be more."""
    assert rule.name is not None, f"{rule.table} has no name for its rows"
    # Before a transaction is open, and in a thread: loading it the first time takes a while.
    await asyncio.to_thread(load, "pyarrow.parquet", extra="archive")
    table = RowTable(rule.table, (rule.key,), rule.name)
    archive_id = ids.new("arc")
    with tempfile.TemporaryDirectory(prefix="headrace-archive-") as folder:
        written, stored = Path(folder) / "rows.parquet", Path(folder) / "stored.parquet"
        async with db.transaction() as tx:
            # Before the rows themselves: a change between the two is noticed below.
            versions = await tx.fetch(_versions(rule), line, batch)
            if not versions:
                return 0, False
            keys = [row["key"] for row in versions]
            summary = await parquet.write(tx.connection, table, rule.table, written, only=keys, without=rule.personal)
        on_step("written")
        location = f"{rule.table}/{summary.min_at:%Y/%m}/{archive_id}.parquet"
        await storage.put(location, written)
        on_step("stored")
        if await storage.fetch(location, stored) != summary.sha256:
            raise ArchiveDamaged(f"{location} is not the file that was written.")
    on_step("verified")
    async with db.transaction() as tx:
        gone = await tx.count(_delete(rule), keys, [row["version"] for row in versions])
        if gone:
            await _note(tx, archive_id, rule.table, location, summary)
            await store.count_removed(tx, rule.table, gone)
    # None of a whole batch: another process was faster, or the rows change all the time. The next run tries again.
    return gone, gone > 0 and len(versions) == batch


def _versions(rule: RowRetention) -> str:
    return (
        f"WITH due AS MATERIALIZED ({rule.due}) SELECT {rule.key} AS key, xmin::text AS version "
        f"FROM headrace.{rule.table} WHERE {rule.key} = ANY (ARRAY(SELECT {rule.key} FROM due)) ORDER BY 1"
    )


def _delete(rule: RowRetention) -> str:
    return (
        f"DELETE FROM headrace.{rule.table} AS gone USING unnest($1::bigint[], $2::text[]) AS written (key, version) "
        f"WHERE gone.{rule.key} = written.key AND gone.xmin::text = written.version"
    )


NOTE = """
INSERT INTO headrace.row_archives (id, table_name, location, row_count, min_id, max_id, min_at, max_at, size_bytes,
                                   sha256)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""


async def _note(tx: Tx, archive_id: str, table: str, location: str, summary: Summary) -> None:
    facts = asdict(summary)
    names = ("row_count", "min_id", "max_id", "min_at", "max_at", "size_bytes", "sha256")
    await tx.execute(NOTE, archive_id, table, location, *(facts[name] for name in names))

"""SQL about months, archives and the runs of retention."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from headrace.database import Row, Tx
from headrace.operations.model import (
    Archive,
    ArchiveState,
    MonthlyTable,
    Partition,
    Retention,
    Summary,
    next_month,
    starts,
)
from headrace.sql import Mark, Where

ARCHIVE = """
SELECT id, table_name, period, state, location, row_count, min_id, max_id, min_at, max_at, size_bytes, sha256,
       detached_at, archived_at, verified_at, dropped_at, restored_as
FROM headrace.archives
"""


def _archive(row: Row) -> Archive:
    fields: dict[str, Any] = dict(row)
    return Archive(**fields | {"state": ArchiveState(row["state"])})


async def find_archive(tx: Tx, archive_id: str) -> Archive | None:
    row = await tx.fetchrow(f"{ARCHIVE} WHERE id = $1", archive_id)
    return None if row is None else _archive(row)


async def find_month(tx: Tx, table: str, month: date) -> Archive | None:
    row = await tx.fetchrow(f"{ARCHIVE} WHERE table_name = $1 AND period = $2", table, month)
    return None if row is None else _archive(row)


async def list_archives(
    tx: Tx,
    *,
    table: str | None = None,
    states: Sequence[ArchiveState] | None = None,
    older_than: Mark | None = None,
    limit: int,
) -> list[Archive]:
    """Those that left last come first."""
    where = Where().eq("table_name", table).among("state", states).older_than(("detached_at", "id"), older_than)
    sql = f"{ARCHIVE} {where.sql} ORDER BY detached_at DESC, id DESC LIMIT ${where.next}"
    return [_archive(row) for row in await tx.fetch(sql, *where.args, limit)]


INSERT_DETACHED = "INSERT INTO headrace.archives (id, table_name, period) VALUES ($1, $2, $3)"


async def insert_detached(tx: Tx, archive_id: str, table: MonthlyTable, month: date) -> None:
    await tx.execute(INSERT_DETACHED, archive_id, table.name, month)


MARK_ARCHIVED = """
UPDATE headrace.archives
SET state = 'ARCHIVED', location = $2, row_count = $3, min_id = $4, max_id = $5, min_at = $6, max_at = $7,
    size_bytes = $8, sha256 = $9, archived_at = clock_timestamp(), verified_at = NULL
WHERE id = $1 AND state = 'DETACHED'
"""


async def mark_archived(tx: Tx, archive_id: str, location: str, summary: Summary) -> bool:
    s = summary
    facts = (s.row_count, s.min_id, s.max_id, s.min_at, s.max_at, s.size_bytes, s.sha256)
    return await tx.count(MARK_ARCHIVED, archive_id, location, *facts) == 1


MARK_TO_WRITE_AGAIN = "UPDATE headrace.archives SET state = 'DETACHED' WHERE id = $1 AND state = 'ARCHIVED'"


async def mark_to_write_again(tx: Tx, archive_id: str) -> None:
    await tx.execute(MARK_TO_WRITE_AGAIN, archive_id)


# The hash is in the WHERE: what was verified is this very file, not one written in its place meanwhile.
MARK_VERIFIED = """
UPDATE headrace.archives SET verified_at = clock_timestamp()
WHERE id = $1 AND sha256 = $2 AND state IN ('ARCHIVED', 'DROPPED')
"""


async def mark_verified(tx: Tx, archive: Archive) -> bool:
    return await tx.count(MARK_VERIFIED, archive.id, archive.sha256) == 1


MARK_DROPPED = """
UPDATE headrace.archives SET state = 'DROPPED', dropped_at = clock_timestamp()
WHERE id = $1 AND sha256 = $2 AND state = 'ARCHIVED' AND verified_at >= archived_at
"""


async def mark_dropped(tx: Tx, archive: Archive) -> bool:
    return await tx.count(MARK_DROPPED, archive.id, archive.sha256) == 1


MARK_RESTORED = "UPDATE headrace.archives SET restored_as = $2 WHERE id = $1"


async def mark_restored(tx: Tx, archive_id: str, table: str | None) -> None:
    await tx.execute(MARK_RESTORED, archive_id, table)


# -- partitions

# Attached ones by the catalog; detached ones by their names, which stay as they were.
LIST_PARTITIONS = """
SELECT parent.relname AS table_name, child.relname AS name,
       to_date(substring(child.relname FROM '_y(\\d{4}m\\d{2})$'), 'YYYY"m"MM') AS period,
       child.relispartition AS attached,
       pg_total_relation_size(child.oid) AS size_bytes,
       coalesce(pg_stat_get_live_tuples(child.oid), 0) AS live_rows,
       coalesce(pg_stat_get_dead_tuples(child.oid), 0) AS dead_rows
FROM pg_class AS parent
JOIN pg_class AS child ON child.relnamespace = parent.relnamespace AND child.relkind = 'r'
  AND child.relname ~ ('^' || parent.relname || '(_y\\d{4}m\\d{2}|_default)$')
WHERE parent.relnamespace = 'headrace'::regnamespace AND parent.relkind = 'p'
ORDER BY 1, 3 NULLS FIRST
"""


async def list_partitions(tx: Tx) -> list[Partition]:
    return [Partition(**row) for row in await tx.fetch(LIST_PARTITIONS)]


FIND_PARTITION = """
SELECT relispartition FROM pg_class
WHERE relnamespace = 'headrace'::regnamespace AND relname = $1 AND relkind = 'r'
"""


async def is_attached(tx: Tx, partition: str) -> bool | None:
    """None when there is no such table."""
    attached: bool | None = await tx.fetchval(FIND_PARTITION, partition)
    return attached


async def why_needed(tx: Tx, table: MonthlyTable, month: date) -> str | None:
    """Why the month must stay where it is."""
    if not await tx.fetchval("SELECT $1::timestamptz <= now()", starts(next_month(month))):
        return "it is not over yet"
    if table.needed is None:
        return None
    statement = table.needed.format(partition=f"headrace.{table.partition(month)}", month=month)
    reason: str | None = await tx.fetchval(statement)
    return reason


MAKE_MONTH_AHEAD = "SELECT headrace.make_month_ahead(('headrace.' || $1)::regclass)"


async def make_month_ahead(tx: Tx, table: str) -> date | None:
    """The month that was made; None when none was missing."""
    made: date | None = await tx.fetchval(MAKE_MONTH_AHEAD, table)
    return made


FOREIGN_KEYS = "SELECT conname FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'f' ORDER BY 1"


async def list_foreign_keys(tx: Tx, partition: str) -> list[str]:
    return [row["conname"] for row in await tx.fetch(FOREIGN_KEYS, f"headrace.{partition}")]


# -- runs of retention

START_RUN = """
INSERT INTO headrace.retention_runs (table_name, started_at) VALUES ($1, coalesce($2, now()))
ON CONFLICT (table_name) DO UPDATE
SET started_at = excluded.started_at, finished_at = NULL, removed_rows = 0, error = NULL
"""


async def start_run(tx: Tx, table: str, *, now: datetime | None = None) -> None:
    await tx.execute(START_RUN, table, now)


# Added as it happens: a run that is killed has still removed what it removed.
COUNT_REMOVED = """
UPDATE headrace.retention_runs
SET removed_rows = removed_rows + $2, removed_total = removed_total + $2, marks = coalesce($3, marks)
WHERE table_name = $1
"""


async def count_removed(tx: Tx, table: str, rows: int, *, marks: Mapping[str, Mapping[str, str]] | None = None) -> None:
    await tx.execute(COUNT_REMOVED, table, rows, marks)


FIND_MARKS = "SELECT marks FROM headrace.retention_runs WHERE table_name = $1"


async def find_marks(tx: Tx, table: str) -> dict[str, dict[str, str]]:
    """Up to where earlier runs have looked."""
    return dict(await tx.fetchval(FIND_MARKS, table) or {})


FINISH_RUN = """
UPDATE headrace.retention_runs SET finished_at = coalesce($3, clock_timestamp()), error = $2 WHERE table_name = $1
"""


async def finish_run(tx: Tx, run: Retention, *, now: datetime | None = None) -> None:
    await tx.execute(FINISH_RUN, run.table_name, run.error, now)

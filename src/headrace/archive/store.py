"""SQL about months, archives and the runs of retention."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import Any

from asyncpg import RestrictViolationError

from headrace.archive.errors import MonthNeeded
from headrace.archive.model import Archive, ArchiveState, Minimum, MonthlyTable, Partition, Retention, Summary
from headrace.database import Row, Tx
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


# -- a month on its way out: each step is a function of the owner's, which checks those before it


DETACH_MONTH = "SELECT headrace.detach_month($1, $2, $3, $4)"


async def detach_month(tx: Tx, archive_id: str, table: MonthlyTable, month: date, *, wait: timedelta) -> timedelta:
    """Detach it and begin its archive; gives how long the table has been locked so far."""
    with _refusing():
        locked: timedelta = await tx.fetchval(DETACH_MONTH, table.name, month, archive_id, _millis(wait))
    return locked


NOTE_ARCHIVED = "SELECT headrace.note_archived_month($1, $2, $3, $4, $5, $6, $7, $8)"


async def note_archived(tx: Tx, archive_id: str, summary: Summary) -> bool:
    s = summary
    facts = (s.row_count, s.min_id, s.max_id, s.min_at, s.max_at, s.size_bytes, s.sha256)
    return bool(await tx.fetchval(NOTE_ARCHIVED, archive_id, *facts))


REWRITE_MONTH = "SELECT headrace.rewrite_month($1)"


async def rewrite_month(tx: Tx, archive_id: str) -> None:
    await tx.execute(REWRITE_MONTH, archive_id)


NOTE_VERIFIED = "SELECT headrace.note_verified_month($1, $2)"


async def note_verified(tx: Tx, archive: Archive) -> bool:
    """False when another file was written meanwhile."""
    return bool(await tx.fetchval(NOTE_VERIFIED, archive.id, archive.sha256))


UNLINK_MONTH = "SELECT headrace.unlink_month($1, $2)"


async def unlink_month(tx: Tx, archive: Archive, *, wait: timedelta) -> timedelta | None:
    """Drop one foreign key of its table; None when there is none."""
    locked: timedelta | None = await tx.fetchval(UNLINK_MONTH, archive.id, _millis(wait))
    return locked


DROP_MONTH = "SELECT headrace.drop_month($1, $2, $3)"


async def drop_month(tx: Tx, archive: Archive, *, wait: timedelta) -> bool:
    """False when another file was written, or the file was not verified."""
    with _refusing():
        return bool(await tx.fetchval(DROP_MONTH, archive.id, archive.sha256, _millis(wait)))


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except RestrictViolationError as exc:
        raise MonthNeeded(str(exc)) from exc


def _millis(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)


LIST_MINIMUMS = "SELECT table_name, setting, keep FROM headrace.retention_minimums ORDER BY table_name"


async def list_minimums(tx: Tx) -> list[Minimum]:
    """How long months of each table stay at least."""
    return [Minimum(**row) for row in await tx.fetch(LIST_MINIMUMS)]


SET_MINIMUM = "UPDATE headrace.retention_minimums SET keep = $2, set_at = now() WHERE table_name = $1"


async def set_minimum(tx: Tx, minimum: Minimum) -> None:
    await tx.execute(SET_MINIMUM, minimum.table_name, minimum.keep)


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


MAKE_MONTH_AHEAD = "SELECT headrace.make_month_ahead(('headrace.' || $1)::regclass)"


async def make_month_ahead(tx: Tx, table: str) -> date | None:
    """The month that was made; None when none was missing."""
    made: date | None = await tx.fetchval(MAKE_MONTH_AHEAD, table)
    return made


# -- runs of retention

START_RUN = """
INSERT INTO headrace.retention_runs (table_name, started_at) VALUES ($1, coalesce($2, now()))
ON CONFLICT (table_name) DO UPDATE
SET started_at = excluded.started_at, finished_at = NULL, removed_rows = 0, error = NULL
"""


async def start_run(tx: Tx, table: str, *, now: datetime | None = None) -> None:
    await tx.execute(START_RUN, table, now)


# Added as it happens: a run that is killed has still removed rows.
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

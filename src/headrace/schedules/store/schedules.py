"""SQL that reads and changes schedules. The SQL of firing is in ``store.firing``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from headrace.database import Row, Tx
from headrace.schedules.errors import ScheduleNameTaken
from headrace.schedules.model import MisfirePolicy, OverlapPolicy, Schedule, ScheduleSpec, ScheduleUid
from headrace.sql import Mark, Where
from headrace.tasks.store.tasks import INTERNAL

_COLUMNS = ", ".join(f'"{name}"' if name == "interval" else name for name in Schedule.__dataclass_fields__)
# Wakes sleeping schedulers, because there may be an earlier due time.
_WAKE = "pg_notify('headrace_schedules', '')"


def _schedule_of(row: Row) -> Schedule:
    fields: dict[str, Any] = {name: row[name] for name in Schedule.__dataclass_fields__}
    typed = {
        "misfire_policy": MisfirePolicy(row["misfire_policy"]),
        "overlap_policy": OverlapPolicy(row["overlap_policy"]),
    }
    return Schedule(**fields | typed)


INSERT = f"""
INSERT INTO headrace.scheduled_tasks AS known
  (uid, user_id, name, type, description, is_recurring, cron_expr, "interval", timezone, next_run, misfire_policy,
   enabled, max_duration_seconds, max_retries, timeout_grace_period, max_extension_seconds, max_concurrent,
   overlap_policy, max_waiting, priority, labels, data)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
-- Restores a deleted schedule whose history is not yet purged.
ON CONFLICT (uid) DO UPDATE
SET (name, type, description, is_recurring, cron_expr, "interval", timezone, next_run, misfire_policy, enabled,
     max_duration_seconds, max_retries, timeout_grace_period, max_extension_seconds, max_concurrent, overlap_policy,
     max_waiting, priority, labels, data, deleted_at, version)
  = (excluded.name, excluded.type, excluded.description, excluded.is_recurring, excluded.cron_expr,
     excluded."interval", excluded.timezone, excluded.next_run, excluded.misfire_policy, excluded.enabled,
     excluded.max_duration_seconds, excluded.max_retries, excluded.timeout_grace_period,
     excluded.max_extension_seconds, excluded.max_concurrent, excluded.overlap_policy, excluded.max_waiting,
     excluded.priority, excluded.labels, excluded.data, NULL, known.version + 1)
WHERE known.deleted_at IS NOT NULL
RETURNING {_COLUMNS}, {_WAKE}
"""


async def insert_schedule(
    tx: Tx, uid: ScheduleUid, spec: ScheduleSpec, *, user_id: str, next_run: datetime | None
) -> Schedule | None:
    """Insert a schedule; None if the uid exists, ``ScheduleNameTaken`` if the owner uses the name."""
    try:
        async with tx.savepoint():
            row = await tx.fetchrow(INSERT, uid, user_id, spec.name, spec.type, *_values(spec, next_run))
    except asyncpg.UniqueViolationError as exc:
        raise _name_taken(exc, spec.name) from exc
    return None if row is None else _schedule_of(row)


def _values(spec: ScheduleSpec, next_run: datetime | None) -> tuple[object, ...]:
    return (
        spec.description, spec.is_recurring, spec.cron, spec.interval, spec.timezone, next_run, spec.misfire_policy,
        spec.enabled, spec.max_duration_seconds, spec.max_retries, spec.timeout_grace_period,
        spec.max_extension_seconds, spec.max_concurrent, spec.overlap_policy, spec.max_waiting, spec.priority,
        dict(spec.labels), spec.data,
    )  # fmt: skip


def _name_taken(exc: asyncpg.UniqueViolationError, name: str) -> Exception:
    if exc.constraint_name != "uk_scheduled_tasks_user_name":
        return exc
    return ScheduleNameTaken(
        f"Another schedule of this owner has the name {name!r}: choose another name, or change that one.",
        fields=["name"],
    )


FIND = f"SELECT {_COLUMNS} FROM headrace.scheduled_tasks WHERE uid = $1 AND deleted_at IS NULL"
# NO KEY: concurrent inserts of runs refer to the row, and are not blocked.
LOCK = f"{FIND} FOR NO KEY UPDATE"


async def find_schedule(tx: Tx, uid: str) -> Schedule | None:
    row = await tx.fetchrow(FIND, uid)
    return None if row is None else _schedule_of(row)


async def lock_schedule(tx: Tx, uid: str) -> Schedule | None:
    """Lock the schedule until the transaction ends: it does not fire, and none of its runs ends."""
    row = await tx.fetchrow(LOCK, uid)
    return None if row is None else _schedule_of(row)


UPDATE = f"""
UPDATE headrace.scheduled_tasks
SET name = $2, description = $3, is_recurring = $4, cron_expr = $5, "interval" = $6, timezone = $7, next_run = $8,
    misfire_policy = $9, enabled = $10, max_duration_seconds = $11, max_retries = $12, timeout_grace_period = $13,
    max_extension_seconds = $14, max_concurrent = $15, overlap_policy = $16, max_waiting = $17, priority = $18,
    labels = $19, data = $20, version = version + 1
WHERE uid = $1
RETURNING {_COLUMNS}, {_WAKE}
"""


async def update_schedule(tx: Tx, uid: str, spec: ScheduleSpec, *, next_run: datetime | None) -> Schedule:
    """Write a changed schedule. The caller has locked it."""
    try:
        async with tx.savepoint():
            row = await tx.fetchrow(UPDATE, uid, spec.name, *_values(spec, next_run))
    except asyncpg.UniqueViolationError as exc:
        raise _name_taken(exc, spec.name) from exc
    assert row is not None  # locked
    return _schedule_of(row)


DELETE = """
UPDATE headrace.scheduled_tasks
SET deleted_at = now(), enabled = false, next_run = NULL, version = version + 1
WHERE uid = $1 AND deleted_at IS NULL
"""


async def delete_schedule(tx: Tx, uid: str) -> None:
    """Mark it deleted: it is not found and does not fire. The caller holds its lock; ``purge_runs`` does the rest."""
    await tx.execute(DELETE, uid)


# The lock holder purges it; another process takes the next.
LOCK_DELETED = """
SELECT uid FROM headrace.scheduled_tasks
WHERE deleted_at IS NOT NULL ORDER BY deleted_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
"""


async def lock_deleted(tx: Tx) -> str | None:
    """The uid of a deleted schedule with remaining rows, locked."""
    uid: str | None = await tx.fetchval(LOCK_DELETED)
    return uid


# Locked runs are left for the next call: their transaction may wait for the schedule.
DELETE_RUNS = """
DELETE FROM headrace.task_executions WHERE id IN (
  SELECT id FROM headrace.task_executions WHERE task_uid = $1
  ORDER BY scheduled_at DESC, execution_uid DESC LIMIT $2 FOR UPDATE SKIP LOCKED
)
"""
DELETE_EMPTY_SCHEDULE = """
DELETE FROM headrace.scheduled_tasks AS schedule
WHERE uid = $1 AND NOT EXISTS (SELECT FROM headrace.task_executions AS run WHERE run.task_uid = schedule.uid)
"""


async def purge_runs(tx: Tx, uid: str, *, limit: int) -> int:
    """Delete some runs of a deleted schedule, and with the last one the schedule; returns the number of rows. The
    caller has locked it."""
    gone = await tx.count(DELETE_RUNS, uid, limit)
    return gone if gone == limit else gone + await tx.count(DELETE_EMPTY_SCHEDULE, uid)


@dataclass(frozen=True, slots=True)
class ScheduleFilter:
    """Filters of schedules; None does not filter. ``user_id`` None means all users."""

    user_id: str | None
    type: str | None = None
    enabled: bool | None = None
    labels: Mapping[str, str] | None = None
    name: str | None = None  # a substring
    internal: bool = True  # include the product's own


async def list_schedules(
    tx: Tx, wanted: ScheduleFilter, *, older_than: Mark | None = None, limit: int
) -> Sequence[Schedule]:
    """Schedules, newest first. There are thousands, not millions: a full scan is cheap enough."""
    where = (
        Where()
        .is_null("deleted_at")
        .eq("user_id", wanted.user_id)
        .eq("type", wanted.type)
        .eq("enabled", wanted.enabled)
        .contains("labels", wanted.labels)
        .has_text("name", wanted.name)
        .not_prefixed("type", None if wanted.internal else INTERNAL)
        .older_than(("created_at", "uid"), older_than)
    )
    sql = (
        f"SELECT {_COLUMNS} FROM headrace.scheduled_tasks {where.sql} "
        f"ORDER BY created_at DESC, uid DESC LIMIT ${where.next}"
    )
    return [_schedule_of(row) for row in await tx.fetch(sql, *where.args, limit)]


NOW = "SELECT coalesce($1, now())"


async def clock(tx: Tx, now: datetime | None = None) -> datetime:
    """The database's clock."""
    at: datetime = await tx.fetchval(NOW, now)
    return at

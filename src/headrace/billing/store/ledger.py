"""SQL for the ledger. Only headrace.hold_units and headrace.settle_holds write holds and settlements."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from asyncpg import UniqueViolationError

from headrace import ids
from headrace.billing.errors import AdjustmentKeyReused
from headrace.billing.model import Direction, Entry, EntryStatus, Source, UsedDay
from headrace.database import Row, Tx
from headrace.sql import Mark, Where

COLUMNS = (
    """id, user_id, task_id, entitlement_id, hold_id, consume_unit, direction, status, source, remark, created_at"""
)


def entry_of(row: Row) -> Entry:
    fields = {name: row[name] for name in Entry.__dataclass_fields__}
    return Entry(
        **fields
        | {
            "direction": Direction(row["direction"]),
            "status": EntryStatus(row["status"]),
            "source": Source(row["source"]),
        }
    )


INSERT_ADJUSTMENT = f"""
INSERT INTO headrace.usage_ledger
  (id, period, user_id, entitlement_id, consume_unit, direction, status, source, idempotency_key, remark)
VALUES ($1::varchar, headrace.typeid_month($1::varchar), $2, $3, $4, $5, 'COMMITTED', 'MANUAL_ADJUST',
        to_char(headrace.typeid_month($1::varchar), 'YYYYMM') || ':adjust:' || $6::text, $7)
RETURNING {COLUMNS}
"""


async def insert_adjustment(tx: Tx, user_id: str, entitlement_id: str, units: int, *, key: str, reason: str) -> Entry:
    """Positive units are granted, negative ones removed; ``AdjustmentKeyReused`` for a used key."""
    direction = Direction.CREDIT if units > 0 else Direction.DEBIT
    try:
        row = await tx.fetchrow(
            INSERT_ADJUSTMENT, ids.new("led"), user_id, entitlement_id, abs(units), direction, key, reason
        )
    except UniqueViolationError as exc:
        # Partitions' indexes have names of their own; this table has one unique key without an id.
        if "idempotency_key" not in (exc.constraint_name or "") and "user_id" not in (exc.constraint_name or ""):
            raise
        raise AdjustmentKeyReused from exc
    assert row is not None
    return entry_of(row)


FIND_ADJUSTMENT = f"""
SELECT {COLUMNS} FROM headrace.usage_ledger
WHERE user_id = $1 AND idempotency_key = ANY (ARRAY(
  SELECT to_char(now() AT TIME ZONE 'UTC' - ago, 'YYYYMM') || ':adjust:' || $2::text
  FROM unnest(ARRAY[interval '0', interval '1 month']) AS ago
))
"""


async def find_adjustment(tx: Tx, user_id: str, key: str) -> Entry | None:
    """The adjustment with this key, of this month or the last: a request may be repeated after midnight."""
    row = await tx.fetchrow(FIND_ADJUSTMENT, user_id, key)
    return None if row is None else entry_of(row)


LIST_CHARGED = """
SELECT entitlement_id, sum(consume_unit)::integer AS units
FROM headrace.usage_ledger
WHERE task_id = $1 AND status = 'COMMITTED' AND hold_id IS NOT NULL
GROUP BY entitlement_id ORDER BY entitlement_id
"""


async def list_charged(tx: Tx, task_id: str) -> list[tuple[str, int]]:
    """What a task was charged, by entitlement, in the order in which entitlements are locked."""
    return [(row["entitlement_id"], row["units"]) for row in await tx.fetch(LIST_CHARGED, task_id)]


INSERT_RETURN = f"""
INSERT INTO headrace.usage_ledger
  (id, period, user_id, entitlement_id, task_id, consume_unit, direction, status, source, idempotency_key, remark)
VALUES ($1::varchar, headrace.typeid_month($1::varchar), $2, $3, $4::varchar, $5, 'CREDIT', 'COMMITTED',
        'MANUAL_ADJUST',
        to_char(headrace.typeid_month($1::varchar), 'YYYYMM') || ':return:' || $4::varchar || ':' || $3::varchar, $6)
RETURNING {COLUMNS}
"""


async def insert_return(tx: Tx, user_id: str, entitlement_id: str, task_id: str, units: int, *, reason: str) -> Entry:
    """The credit for the returned result of a task."""
    row = await tx.fetchrow(INSERT_RETURN, ids.new("led"), user_id, entitlement_id, task_id, units, reason)
    assert row is not None
    return entry_of(row)


CHARGED = """
SELECT coalesce(sum(CASE direction WHEN 'DEBIT' THEN consume_unit ELSE -consume_unit END), 0)::bigint
FROM headrace.usage_ledger WHERE task_id = $1 AND status = 'COMMITTED'
"""


async def find_charged(tx: Tx, task_id: str) -> int:
    """The units that a task was charged, without returned ones."""
    units: int = await tx.fetchval(CHARGED, task_id)
    return units


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Filters of ledger entries; None does not filter."""

    user_id: str | None
    task_id: str | None = None
    entitlement_id: str | None = None
    status: EntryStatus | None = None
    source: Source | None = None
    since: datetime | None = None
    until: datetime | None = None


SELECT = f"SELECT {COLUMNS} FROM headrace.usage_ledger"


def list_statement(wanted: EntryFilter, older_than: Mark | None, limit: int) -> tuple[str, tuple[object, ...]]:
    """Uses the index of a user, a task or an entitlement; for all users that of statuses, one scan for each."""
    narrow = (wanted.user_id, wanted.task_id, wanted.entitlement_id, wanted.status)
    statuses = [wanted.status] if any(narrow) else list(EntryStatus)
    parts: list[str] = []
    args: tuple[object, ...] = ()
    for status in statuses:
        where = _where(replace(wanted, status=status), older_than, first=len(args) + 1)
        args += (*where.args, limit)
        parts.append(f"({SELECT} {where.sql} ORDER BY created_at DESC, id DESC LIMIT ${len(args)})")
    if len(parts) == 1:
        return parts[0], args
    together = " UNION ALL ".join(parts)
    return f"SELECT * FROM ({together}) AS entry ORDER BY created_at DESC, id DESC LIMIT ${len(args)}", args


def _where(wanted: EntryFilter, older_than: Mark | None, *, first: int) -> Where:
    return (
        Where(first)
        .eq("user_id", wanted.user_id)
        .eq("task_id", wanted.task_id)
        .eq("entitlement_id", wanted.entitlement_id)
        .eq("status", wanted.status)
        .eq("source", wanted.source)
        .since("created_at", wanted.since)
        .until("created_at", wanted.until)
        .older_than(("created_at", "id"), older_than)
    )


async def list_entries(tx: Tx, wanted: EntryFilter, *, older_than: Mark | None = None, limit: int) -> list[Entry]:
    """Newest first."""
    sql, args = list_statement(wanted, older_than, limit)
    return [entry_of(row) for row in await tx.fetch(sql, *args)]


USED_BY_DAY = """
SELECT (created_at AT TIME ZONE 'UTC')::date AS day,
       coalesce(sum(consume_unit) FILTER (WHERE status = 'COMMITTED'), 0)::bigint AS used,
       coalesce(sum(consume_unit) FILTER (WHERE status = 'RELEASED'), 0)::bigint AS released,
       count(DISTINCT task_id) FILTER (WHERE status = 'COMMITTED') AS tasks
FROM headrace.usage_ledger
WHERE user_id = $1 AND created_at >= $2 AND created_at < $3 AND hold_id IS NOT NULL
GROUP BY 1 ORDER BY 1
"""


async def used_by_day(tx: Tx, user_id: str, since: date, until: date) -> list[UsedDay]:
    """Days with settlements, from ``since`` and before ``until``, in UTC."""
    rows = await tx.fetch(USED_BY_DAY, user_id, _midnight(since), _midnight(until))
    return [UsedDay(row["day"], row["used"], row["released"], row["tasks"]) for row in rows]


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)

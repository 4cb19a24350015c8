"""SQL for the ledger. Only headrace.hold_units and headrace.settle_holds write holds and settlements."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from asyncpg import UniqueViolationError

from headrace import ids, walks
from headrace.billing.errors import AdjustmentKeyReused
from headrace.billing.model import Direction, Entry, EntryStatus, Source
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


# They have indexes of their own: idx_usage_ledger_rare_source and idx_usage_ledger_user_rare_source. The other sources
# are in half of all entries each.
RARE_SOURCES = frozenset({Source.TASK_CANCEL, Source.TASK_FAIL, Source.MANUAL_ADJUST, Source.SUBSCRIPTION_GRANT})
_ORDER = "created_at DESC, id DESC"


def list_statement(wanted: EntryFilter, older_than: Mark | None, limit: int) -> tuple[str, tuple[object, ...]]:
    """A walk along one index; for all users along that of statuses, a walk for each. The other filters are applied to
    the rows it reads."""
    indexed, statuses = _indexed(wanted), _walked_statuses(wanted)
    rows = walks.bound(_clauses(1, wanted, _EQUAL - indexed), limit, rows=walks.share(len(statuses)))
    sources: list[str] = []
    args: tuple[object, ...] = ()
    for status in statuses:
        where = _clauses(len(args) + 1, replace(wanted, status=status), indexed)
        where = where.since("created_at", wanted.since).until("created_at", wanted.until)
        where = where.older_than(("created_at", "id"), older_than)
        sources.append(walks.source("headrace.usage_ledger", where, _ORDER, rows=rows))
        args += where.args
    rest = _clauses(len(args) + 1, wanted, _EQUAL - indexed)
    return walks.selection(COLUMNS, sources, "entry", rest, _ORDER, rows=rows), (*args, *rest.args, limit)


_EQUAL = frozenset({"user_id", "task_id", "entitlement_id", "status", "source"})


def _indexed(wanted: EntryFilter) -> frozenset[str]:
    """The fields of the index that answers most of the filter, in the order of the list."""
    if wanted.task_id is not None:
        return frozenset({"task_id"})
    if wanted.entitlement_id is not None:
        return frozenset({"entitlement_id"})
    if wanted.source in RARE_SOURCES:
        return frozenset({"user_id", "source"})
    return frozenset({"status"} if wanted.user_id is None else {"user_id"})


def _walked_statuses(wanted: EntryFilter) -> list[EntryStatus | None]:
    return [*EntryStatus] if _indexed(wanted) == {"status"} and wanted.status is None else [wanted.status]


def _clauses(first: int, wanted: EntryFilter, fields: frozenset[str]) -> Where:
    where = Where(first)
    for field in sorted(fields - {"source"}):
        where = where.eq(field, getattr(wanted, field))
    return where.is_word("source", wanted.source if "source" in fields else None)


async def list_entries(
    tx: Tx, wanted: EntryFilter, *, older_than: Mark | None = None, limit: int
) -> walks.Found[Entry]:
    """Newest first."""
    return await walks.walk(
        tx,
        lambda mark, limit: list_statement(wanted, mark, limit),
        entry_of,
        lambda row: (row["created_at"], row["id"]),
        older_than=older_than,
        limit=limit,
        rows=walks.share(len(_walked_statuses(wanted))),
    )


TASK_TITLES = "SELECT id, title FROM headrace.tasks WHERE id = ANY($1) AND deleted_at IS NULL AND title <> ''"


async def list_task_titles(tx: Tx, task_ids: Sequence[str]) -> dict[str, str]:
    """The titles of the tasks of a page of entries: of a removal the name of its file."""
    return {row["id"]: row["title"] for row in await tx.fetch(TASK_TITLES, list(task_ids))}

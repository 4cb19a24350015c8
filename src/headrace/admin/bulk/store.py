"""SQL for actions on many rows."""

from collections.abc import Sequence
from typing import Any

from headrace.admin.bulk.model import Bulk, BulkResource, Outcome
from headrace.database import Row, Tx
from headrace.sql import Mark, Where

_COLUMNS = ", ".join(Bulk.__dataclass_fields__)
_SHOWN_REFUSALS = 20


def _bulk_of(row: Row) -> Bulk:
    return Bulk(**{**dict(row), "resource": BulkResource(row["resource"])})


INSERT = f"""
INSERT INTO headrace.bulk_actions
  (task_id, user_id, as_admin, scopes, resource, action, filter, expected, matched, request_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
RETURNING {_COLUMNS}
"""


async def insert_bulk(
    tx: Tx,
    task_id: str,
    *,
    user_id: str,
    as_admin: bool,
    scopes: Sequence[str] | None,
    resource: BulkResource,
    action: str,
    wanted: dict[str, Any],
    expected: int,
    matched: int,
    request_id: str | None,
) -> Bulk:
    facts = (task_id, user_id, as_admin, scopes, resource, action, wanted, expected, matched, request_id)
    row = await tx.fetchrow(INSERT, *facts)
    assert row is not None
    return _bulk_of(row)


FIND = f"SELECT {_COLUMNS} FROM headrace.bulk_actions WHERE task_id = $1"


async def find_bulk(tx: Tx, task_id: str) -> Bulk | None:
    row = await tx.fetchrow(FIND, task_id)
    return None if row is None else _bulk_of(row)


async def list_bulks(tx: Tx, *, user_id: str | None, older_than: Mark | None, limit: int) -> list[Bulk]:
    """Newest first; one user's, or everybody's."""
    where = Where().eq("user_id", user_id).older_than(("created_at", "task_id"), older_than)
    sql = f"SELECT {_COLUMNS} FROM headrace.bulk_actions {where.sql} ORDER BY created_at DESC, task_id DESC"
    return [_bulk_of(row) for row in await tx.fetch(f"{sql} LIMIT ${where.next}", *where.args, limit)]


ADD = f"""
UPDATE headrace.bulk_actions
SET done = done + $2, skipped = skipped + $3, refused = refused + $4, updated_at = now(),
    refusals = CASE WHEN jsonb_array_length(refusals) < {_SHOWN_REFUSALS} THEN refusals || $5 ELSE refusals END
WHERE task_id = $1
"""


async def add(tx: Tx, task_id: str, outcome: Outcome) -> None:
    """Count completed rows, in the transaction that completes them."""
    shown = (outcome.refusals or [])[:_SHOWN_REFUSALS]
    await tx.execute(ADD, task_id, outcome.done, outcome.skipped, outcome.refused, shown)


# Only from its last position: a late worker that continues after a takeover changes nothing.
ADVANCE = """
UPDATE headrace.bulk_actions
SET position_at = $4, position_id = $5, updated_at = now(), finished_at = CASE WHEN $6 THEN now() END
WHERE task_id = $1 AND (position_at, position_id) IS NOT DISTINCT FROM ($2::timestamptz, $3::varchar)
  AND finished_at IS NULL
"""


async def advance(tx: Tx, bulk: Bulk, position: Mark | None, *, over: bool) -> bool:
    """Note up to where everything is done; False if it is no longer where ``bulk`` says."""
    at, row_id = position or (None, None)
    return await tx.count(ADVANCE, bulk.task_id, bulk.position_at, bulk.position_id, at, row_id, over) == 1


# Longer than tasks are kept by default; its effects are in the audit trail.
PURGE = """
DELETE FROM headrace.bulk_actions WHERE task_id IN (
  SELECT task_id FROM headrace.bulk_actions WHERE created_at < now() - interval '90 days'
  ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
"""


async def purge_old(tx: Tx, limit: int) -> int:
    """Remove those that were asked for long ago; gives how many."""
    return await tx.count(PURGE, limit)


FORGET_USER = "DELETE FROM headrace.bulk_actions WHERE user_id = $1"


async def delete_of_user(tx: Tx, user_id: str) -> int:
    return await tx.count(FORGET_USER, user_id)

"""SQL of orders of removal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headrace.assets.model import Asset
from headrace.assets.store.assets import COLUMNS, asset_of
from headrace.database import Row, Tx
from headrace.removal.service.orders.model import Removal, RightsBasis
from headrace.sql import Mark, Where

_OWN = """removal.task_id, removal.user_id, removal.asset_id, removal.asset_sha256, removal.units, removal.batch_id,
  removal.rights_basis, removal.rights_statement, removal.principal_uid, removal.api_key_id, removal.client_ip,
  removal.user_agent, removal.request_id, removal.declared_at, removal.returned_at"""
_FROM = """FROM headrace.removals AS removal
JOIN headrace.tasks AS task ON task.id = removal.task_id AND task.deleted_at IS NULL
LEFT JOIN headrace.assets AS asset ON asset.id = removal.asset_id"""
_SELECT = f"""
SELECT {_OWN}, asset.origin_name AS asset_name, task.quality_level, task.mode, task.output_format,
  coalesce(task.payload ->> 'accept_poor' = 'true', false) AS accept_poor {_FROM}"""


def _removal_of(row: Row) -> Removal:
    fields: dict[str, Any] = dict(row)
    return Removal(**fields | {"rights_basis": RightsBasis(row["rights_basis"])})


INSERT = """
INSERT INTO headrace.removals
  (task_id, user_id, asset_id, asset_sha256, units, batch_id, rights_basis, rights_statement, principal_uid, api_key_id,
   client_ip, user_agent, request_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
"""


async def insert(tx: Tx, *values: object) -> None:
    await tx.execute(INSERT, *values)


FIND = f"{_SELECT} WHERE removal.task_id = $1"


async def find(tx: Tx, task_id: str) -> Removal | None:
    row = await tx.fetchrow(FIND, task_id)
    return None if row is None else _removal_of(row)


async def list_removals(
    tx: Tx, *, user_id: str | None, batch_id: str | None, asset_id: str | None, older_than: Mark | None, limit: int
) -> Sequence[Removal]:
    where = (
        Where()
        .eq("removal.user_id", user_id)
        .eq("removal.batch_id", batch_id)
        .eq("removal.asset_id", asset_id)
        .older_than(("removal.declared_at", "removal.task_id"), older_than)
    )
    rows = await tx.fetch(
        f"{_SELECT} {where.sql} ORDER BY removal.declared_at DESC, removal.task_id DESC LIMIT ${where.next}",
        *where.args,
        limit,
    )
    return [_removal_of(row) for row in rows]


# What the last look at the file found; one that failed may have been followed by another.
DETECTED = """
SELECT detail_json FROM headrace.task_steps
WHERE task_id = $1 AND step_name = 'DETECTING' AND detail_json IS NOT NULL ORDER BY id DESC LIMIT 1
"""


async def find_detected(tx: Tx, task_id: str) -> Any:
    return await tx.fetchval(DETECTED, task_id)


# Named by the last step of one that failed for this; the bytes are swept a day after its end.
HELD_BACK = """
SELECT step.detail_json -> 'files' ->> 'held_back.jpg' FROM headrace.task_steps AS step
JOIN headrace.tasks AS task ON task.id = step.task_id
WHERE step.task_id = $1 AND task.status = 'FAILED'
  AND task.error_code IN ('POOR_RESULT', 'MARK_REMAINS', 'MARK_MOVES', 'MARK_WIDE')
  AND task.finished_at > now() - interval '1 day'
ORDER BY step.id DESC LIMIT 1
"""


async def find_held_back(tx: Tx, task_id: str) -> str | None:
    """Where the picture of a result that was held back is stored."""
    name = await tx.fetchval(HELD_BACK, task_id)
    return None if name is None else str(name)


LOCK_OWNER = "SELECT FROM headrace.users WHERE id = $1 FOR NO KEY UPDATE"


async def lock_owner(tx: Tx, user_id: str) -> None:
    """Returns of one user are counted one after the other."""
    await tx.execute(LOCK_OWNER, user_id)


@dataclass(frozen=True, slots=True)
class ReturnState:
    """What decides whether a result can be returned."""

    returned_at: datetime | None
    in_time: bool
    returns: int  # of this user's other results, lately


# Returned within $3 means ordered not long before that: the index of a user's orders finds them.
RETURN_STATE = """
SELECT removal.returned_at, coalesce(task.finished_at > now() - $2::interval, false) AS in_time, (
  SELECT count(*) FROM headrace.removals AS other
  WHERE other.user_id = removal.user_id AND other.declared_at > now() - 2 * $3::interval
    AND other.returned_at > now() - $3::interval
) AS returns
FROM headrace.removals AS removal JOIN headrace.tasks AS task ON task.id = removal.task_id
WHERE removal.task_id = $1
"""


async def find_return_state(tx: Tx, task_id: str, window: timedelta, lately: timedelta) -> ReturnState:
    row = await tx.fetchrow(RETURN_STATE, task_id, window, lately)
    assert row is not None
    return ReturnState(**row)


MARK_RETURNED = "UPDATE headrace.removals SET returned_at = now() WHERE task_id = $1 AND returned_at IS NULL"


async def mark_returned(tx: Tx, task_id: str) -> None:
    marked = await tx.count(MARK_RETURNED, task_id)
    assert marked == 1, "the owner's row was not locked"


# Of the newest files of a user those whose bytes were never ordered, and that are no mask of an order either. All who
# Order at once what they upload look at few: masks are looked for among orders made since the oldest of these files.
NOT_ORDERED = f"""
WITH newest AS MATERIALIZED (
  SELECT {COLUMNS} FROM headrace.assets
  WHERE user_id = $1 AND status = 'UPLOADED' AND sha256 IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT $2
), masks AS MATERIALIZED (
  SELECT task.payload ->> 'mask_asset_id' AS id
  FROM headrace.removals AS removal JOIN headrace.tasks AS task ON task.id = removal.task_id
  WHERE removal.user_id = $1 AND removal.declared_at >= (SELECT min(created_at) FROM newest)
    AND task.payload ->> 'mask_asset_id' IS NOT NULL
)
SELECT * FROM newest
WHERE id NOT IN (SELECT id FROM masks) AND NOT EXISTS (
  SELECT FROM headrace.assets AS same JOIN headrace.removals AS removal ON removal.asset_id = same.id
  WHERE same.user_id = $1 AND same.sha256 = newest.sha256 AND same.status = 'UPLOADED'
)
ORDER BY created_at DESC, id DESC
"""


async def list_not_ordered(tx: Tx, user_id: str, *, newest: int) -> Sequence[Asset]:
    """Of the ``newest`` files of this user those that nothing was ordered for."""
    return [asset_of(row) for row in await tx.fetch(NOT_ORDERED, user_id, newest)]


# A deleted user takes along address and words of each declaration; the declared right stays.
BLANK_OF_USER = """
UPDATE headrace.removals SET rights_statement = NULL, client_ip = NULL, user_agent = NULL, request_id = NULL
WHERE task_id = ANY (ARRAY(
  SELECT task_id FROM headrace.removals
  WHERE user_id = $1 AND num_nonnulls(rights_statement, client_ip, user_agent, request_id) > 0 LIMIT $2
))
"""

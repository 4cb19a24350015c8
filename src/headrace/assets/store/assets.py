"""SQL of assets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headrace import walks
from headrace.assets.model import Asset, AssetId, AssetStatus
from headrace.database import Database, Row, Tx
from headrace.sql import Mark, Where

COLUMNS = """id, user_id, media_type, origin_name, mime_type, size_bytes, sha256, storage_bucket, storage_key, status,
  meta_json, expire_at, preview_key, created_at, updated_at, deleted_at"""
# In the order of docs/why/states.md: what a task that is not over reads must stay.
NOT_OVER = "('UPLOADED', 'QUEUED', 'RUNNING', 'PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING')"


def asset_of(row: Row) -> Asset:
    fields = {name: row[name] for name in Asset.__dataclass_fields__}
    return Asset(**fields | {"status": AssetStatus(row["status"])})


INSERT = f"""
INSERT INTO headrace.assets
  (id, user_id, media_type, origin_name, mime_type, size_bytes, sha256, storage_bucket, storage_key, meta_json,
   expire_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() + $11::interval)
RETURNING {COLUMNS}
"""


async def insert(
    tx: Tx,
    *,
    asset_id: AssetId,
    user_id: str,
    media_type: str,
    origin_name: str,
    mime_type: str,
    size_bytes: int,
    sha256: str,
    bucket: str,
    key: str,
    meta: Mapping[str, Any],
    keep: timedelta | None,
) -> Asset:
    row = await tx.fetchrow(
        INSERT, asset_id, user_id, media_type, origin_name, mime_type, size_bytes, sha256, bucket, key, meta, keep
    )
    assert row is not None
    return asset_of(row)


GET = f"SELECT {COLUMNS} FROM headrace.assets WHERE id = $1 AND status = 'UPLOADED'"


async def find(tx: Tx, asset_id: str) -> Asset | None:
    row = await tx.fetchrow(GET, asset_id)
    return None if row is None else asset_of(row)


GET_BYTES = f"SELECT {COLUMNS} FROM headrace.assets WHERE id = $1 AND purged_at IS NULL"


async def find_bytes(tx: Tx, asset_id: str) -> Asset | None:
    """The file as long as its bytes are there: one that was deleted keeps them for the tasks that work on it."""
    row = await tx.fetchrow(GET_BYTES, asset_id)
    return None if row is None else asset_of(row)


# Sharing, storing and removing bytes is serialized for these bytes of this user.
LOCK_BYTES = "SELECT pg_advisory_xact_lock(hashtextextended('headrace.asset_bytes ' || $1 || ' ' || $2, 0))"


async def lock_bytes(tx: Tx, user_id: str, sha256: str) -> None:
    await tx.execute(LOCK_BYTES, user_id, sha256)


FIND_EQUAL = f"""
SELECT {COLUMNS} FROM headrace.assets
WHERE user_id = $1 AND sha256 = $2 AND size_bytes = $3 AND status = 'UPLOADED'
ORDER BY created_at LIMIT 1
"""


async def find_equal(tx: Tx, user_id: str, sha256: str, size: int) -> Asset | None:
    """A file of this user with the same bytes."""
    row = await tx.fetchrow(FIND_EQUAL, user_id, sha256, size)
    return None if row is None else asset_of(row)


async def find_equal_alone(db: Database, user_id: str, sha256: str, size: int) -> Asset | None:
    """The same outside of a transaction: its result may be gone by now."""
    rows = await db.fetch_alone(FIND_EQUAL, user_id, sha256, size)
    return asset_of(rows[0]) if rows else None


@dataclass(frozen=True, slots=True)
class Filter:
    user_id: str | None
    media_type: str | None = None
    name: str | None = None
    sha256: str | None = None


_ORDER = "created_at DESC, id DESC"


def list_statement(wanted: Filter, older_than: Mark | None, limit: int) -> tuple[str, Sequence[object]]:
    """A walk along the index of a user, a kind or all; or over the few files with the same bytes."""
    where, order = Where().is_word("status", AssetStatus.UPLOADED.value), _ORDER
    if wanted.sha256 is not None:
        where = where.eq("user_id", wanted.user_id).eq("sha256", wanted.sha256)
    elif wanted.user_id is not None:
        # Twice, and so as = ANY: the planner would drop a plain equality from the order, and might walk over the files
        # of all users.
        where, order = where.among("user_id", [wanted.user_id, wanted.user_id]), f"user_id, {_ORDER}"
    if wanted.user_id is None:
        where = where.eq("media_type", wanted.media_type)
    where = where.older_than(("created_at", "id"), older_than)
    rest = Where(first=where.next).has_text("origin_name", wanted.name)
    if wanted.user_id is not None:
        rest = rest.eq("media_type", wanted.media_type)
    source = walks.source("headrace.assets", where, order, rows=walks.bound(rest, limit))
    sql = walks.selection(COLUMNS, [source], "asset", rest, order)
    return sql, (*where.args, *rest.args, limit)


async def list_assets(tx: Tx, wanted: Filter, *, older_than: Mark | None, limit: int) -> walks.Found[Asset]:
    """Newest first."""
    if wanted.sha256 is None:
        await tx.execute(walks.IN_INDEX_ORDER)
    return await walks.walk(
        tx,
        lambda mark, limit: list_statement(wanted, mark, limit),
        asset_of,
        lambda row: (row["created_at"], row["id"]),
        older_than=older_than,
        limit=limit,
    )


DELETE = f"""
UPDATE headrace.assets SET status = 'DELETED', deleted_at = now()
WHERE id = $1 AND status = 'UPLOADED' AND ($2::varchar IS NULL OR user_id = $2)
RETURNING {COLUMNS}
"""


async def delete(tx: Tx, asset_id: str, *, user_id: str | None) -> Asset | None:
    row = await tx.fetchrow(DELETE, asset_id, user_id)
    return None if row is None else asset_of(row)


SET_PREVIEW = "UPDATE headrace.assets SET preview_key = $2 WHERE id = $1 AND status = 'UPLOADED'"


async def set_preview(tx: Tx, asset_id: str, key: str) -> bool:
    return await tx.count(SET_PREVIEW, asset_id, key) == 1


# Each object once, however many rows share it, and incoming uploads.
STORED = """
SELECT coalesce(sum(size_bytes), 0)::bigint AS bytes FROM (
  SELECT DISTINCT split_part(storage_key, '#', 1), size_bytes
  FROM headrace.assets WHERE user_id = $1 AND status = 'UPLOADED'
  UNION ALL
  SELECT id, size_bytes FROM headrace.uploads WHERE user_id = $1 AND status IN ('OPEN', 'COMPLETING')
) AS stored
"""


async def stored_bytes(tx: Tx, user_id: str) -> int:
    size: int = await tx.fetchval(STORED, user_id)
    return size


# One at a time for each user: two uploads that each would just fit must not both be let in.
LOCK_QUOTA = "SELECT pg_advisory_xact_lock(hashtextextended('headrace.stored_bytes ' || $1, 0))"


async def lock_quota(tx: Tx, user_id: str) -> None:
    await tx.execute(LOCK_QUOTA, user_id)


EXPIRE = f"""
UPDATE headrace.assets SET status = 'DELETED', deleted_at = now()
WHERE id = ANY (ARRAY(
  SELECT id FROM headrace.assets AS asset
  WHERE expire_at < coalesce($2, now()) AND status = 'UPLOADED'
    AND NOT EXISTS (
      SELECT FROM headrace.tasks WHERE input_asset_id = asset.id AND status IN {NOT_OVER}
    )
  ORDER BY expire_at LIMIT $1 FOR UPDATE SKIP LOCKED
))
RETURNING {COLUMNS}
"""


async def expire(tx: Tx, limit: int, *, now: datetime | None = None) -> Sequence[Asset]:
    """Delete expired files that no task needs any more."""
    return [asset_of(row) for row in await tx.fetch(EXPIRE, limit, now)]


# Whether a task that is not over reads this file: as its input, or as the mask of its order.
_IS_READ = f"""(
  EXISTS (SELECT FROM headrace.tasks WHERE input_asset_id = asset.id AND status IN {NOT_OVER})
  OR asset.media_type = 'IMAGE' AND EXISTS (
    SELECT FROM headrace.tasks AS task
    WHERE task.user_id = asset.user_id AND task.status IN {NOT_OVER} AND task.input_asset_id IS NOT NULL
      AND task.payload ->> 'mask_asset_id' = asset.id
  )
)"""
TO_PURGE = f"""
SELECT {COLUMNS} FROM headrace.assets AS asset
WHERE status = 'DELETED' AND purged_at IS NULL AND ($2::varchar IS NULL OR user_id = $2)
  AND NOT {_IS_READ}
ORDER BY deleted_at LIMIT $1
"""


async def list_to_purge(tx: Tx, limit: int, *, user_id: str | None = None) -> Sequence[Asset]:
    """Deleted files that may still have bytes, except those that a task at work reads."""
    return [asset_of(row) for row in await tx.fetch(TO_PURGE, limit, user_id)]


READ_BY_TASK = f"SELECT EXISTS (SELECT FROM headrace.assets AS asset WHERE asset.id = $1 AND {_IS_READ})"


async def is_read_by_task(tx: Tx, asset_id: str) -> bool:
    """Whether a task that is not over reads this file."""
    is_read: bool = await tx.fetchval(READ_BY_TASK, asset_id)
    return is_read


# Rows of the same bytes: those that are there, and deleted ones that a task still reads.
IN_USE = f"""
SELECT EXISTS (
  SELECT FROM headrace.assets AS asset
  WHERE split_part(storage_key, '#', 1) = split_part($1, '#', 1) AND id <> $2
    AND (status = 'UPLOADED' OR {_IS_READ})
)
"""


async def is_shared(tx: Tx, asset: Asset) -> bool:
    """Whether another row needs the bytes of this row. The caller holds ``lock_bytes``."""
    in_use: bool = await tx.fetchval(IN_USE, asset.storage_key, asset.id)
    return in_use


MARK_PURGED = "UPDATE headrace.assets SET purged_at = now(), preview_key = NULL WHERE id = $1 AND purged_at IS NULL"


async def mark_purged(tx: Tx, asset_id: str) -> None:
    await tx.execute(MARK_PURGED, asset_id)


# Names and facts go, the id stays: tasks and the ledger refer to it.
BLANK = """
UPDATE headrace.assets SET origin_name = '(deleted)', meta_json = NULL, sha256 = NULL
WHERE id = ANY (ARRAY(
  SELECT id FROM headrace.assets
  WHERE user_id = $1 AND purged_at IS NOT NULL AND origin_name <> '(deleted)' LIMIT $2
))
"""
DELETE_OF_USER = """
UPDATE headrace.assets SET status = 'DELETED', deleted_at = now()
WHERE id = ANY (ARRAY(SELECT id FROM headrace.assets WHERE user_id = $1 AND status = 'UPLOADED' LIMIT $2))
"""
COUNT_NOT_PURGED = "SELECT count(*) FROM headrace.assets WHERE user_id = $1 AND purged_at IS NULL"

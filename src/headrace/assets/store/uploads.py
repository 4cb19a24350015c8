"""SQL of uploads and their parts."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from headrace.assets.model import AssetId, Part, Upload, UploadId, UploadMethod, UploadStatus
from headrace.database import Row, Tx
from headrace.sql import Mark, Where

_COLUMNS = """id, user_id, asset_id, method, origin_name, size_bytes, sha256, part_bytes, storage_bucket, storage_key,
  storage_upload_id, strip_location, status, error_code, expire_at, created_at, updated_at"""


def upload_of(row: Row) -> Upload:
    return Upload(**{**dict(row), "method": UploadMethod(row["method"]), "status": UploadStatus(row["status"])})


INSERT = f"""
INSERT INTO headrace.uploads
  (id, user_id, asset_id, method, origin_name, size_bytes, sha256, part_bytes, storage_key, strip_location, expire_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() + $11::interval)
RETURNING {_COLUMNS}
"""


async def insert(
    tx: Tx,
    *,
    upload_id: UploadId,
    user_id: str,
    asset_id: AssetId,
    method: UploadMethod,
    origin_name: str,
    size_bytes: int,
    sha256: str | None,
    part_bytes: int | None,
    key: str,
    strip_location: bool,
    lifetime: timedelta,
) -> Upload:
    values = (upload_id, user_id, asset_id, method, origin_name, size_bytes, sha256, part_bytes, key, strip_location)
    row = await tx.fetchrow(INSERT, *values, lifetime)
    assert row is not None
    return upload_of(row)


GET = f"SELECT {_COLUMNS} FROM headrace.uploads WHERE id = $1 AND user_id = $2 AND expire_at > now()"


async def find(tx: Tx, upload_id: str, user_id: str) -> Upload | None:
    row = await tx.fetchrow(GET, upload_id, user_id)
    return None if row is None else upload_of(row)


async def list_uploads(tx: Tx, user_id: str, *, older_than: Mark | None, limit: int) -> Sequence[Upload]:
    """The open uploads, newest first."""
    where = Where().eq("user_id", user_id).older_than(("created_at", "id"), older_than)
    rows = await tx.fetch(
        f"SELECT {_COLUMNS} FROM headrace.uploads {where.sql} AND method <> 'STREAM' "
        f"AND status IN ('OPEN', 'COMPLETING') AND expire_at > now() "
        f"ORDER BY created_at DESC, id DESC LIMIT ${where.next}",
        *where.args,
        limit,
    )
    return [upload_of(row) for row in rows]


SET_STORAGE_UPLOAD = """
UPDATE headrace.uploads SET storage_upload_id = $2 WHERE id = $1 AND status = 'OPEN' AND storage_upload_id IS NULL
"""


async def set_storage_upload(tx: Tx, upload_id: str, storage_upload_id: str) -> bool:
    return await tx.count(SET_STORAGE_UPLOAD, upload_id, storage_upload_id) == 1


# Never beyond a time from its beginning: one that is renewed for ever keeps bytes that are no file.
MAX_UPLOAD_AGE = timedelta(days=7)
RENEW = """
UPDATE headrace.uploads SET expire_at = least(now() + $2::interval, created_at + greatest($3::interval, $2::interval))
WHERE id = $1 AND status = 'OPEN'
"""


async def renew(tx: Tx, upload_id: str, lifetime: timedelta) -> bool:
    """Record that it is alive. False: it was aborted."""
    return await tx.count(RENEW, upload_id, lifetime, MAX_UPLOAD_AGE) == 1


COUNT_OPEN = "SELECT count(*) FROM headrace.uploads WHERE user_id = $1 AND status IN ('OPEN', 'COMPLETING')"


async def count_open(tx: Tx, user_id: str) -> int:
    """How many uploads of this user are under way."""
    count: int = await tx.fetchval(COUNT_OPEN, user_id)
    return count


# -- parts

LIST_PARTS = """
SELECT number, size_bytes, sha256, etag FROM headrace.upload_parts WHERE upload_id = $1 ORDER BY number
"""


async def list_parts(tx: Tx, upload_id: str) -> Sequence[Part]:
    return [Part(**dict(row)) for row in await tx.fetch(LIST_PARTS, upload_id)]


PUT_PART = """
INSERT INTO headrace.upload_parts AS part (upload_id, number, size_bytes, sha256, etag) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (upload_id, number) DO UPDATE
SET size_bytes = excluded.size_bytes, sha256 = excluded.sha256, etag = excluded.etag
"""


async def put_part(tx: Tx, upload_id: str, part: Part, *, lifetime: timedelta) -> bool:
    """Note that a part is stored; the last one that was sent counts. False: the upload is not open."""
    # A client that is still sending has time. And it locks the row: no part arrives while the parts are being joined.
    if not await renew(tx, upload_id, lifetime):
        return False
    await tx.execute(PUT_PART, upload_id, part.number, part.size_bytes, part.sha256, part.etag)
    return True


# -- moves

BEGIN_COMPLETING = f"""
UPDATE headrace.uploads
SET status = 'COMPLETING', lease_token = $3, lease_until = now() + $4::interval, error_code = NULL,
    expire_at = greatest(expire_at, now() + $4::interval)
WHERE id = $1 AND user_id = $2 AND expire_at > now()
  AND (status = 'OPEN' OR status = 'COMPLETING' AND lease_until < now())
RETURNING {_COLUMNS}
"""


async def begin_completing(tx: Tx, upload_id: str, user_id: str, *, token: str, lease: timedelta) -> Upload | None:
    """Claim it, if it is unclaimed or its lease has expired; None if another has it."""
    row = await tx.fetchrow(BEGIN_COMPLETING, upload_id, user_id, token, lease)
    return None if row is None else upload_of(row)


RENEW_LEASE = """
UPDATE headrace.uploads SET lease_until = now() + $3::interval, expire_at = greatest(expire_at, now() + $3::interval)
WHERE id = $1 AND status = 'COMPLETING' AND lease_token = $2
"""


async def renew_lease(tx: Tx, upload_id: str, *, token: str, lease: timedelta) -> bool:
    return await tx.count(RENEW_LEASE, upload_id, token, lease) == 1


COMPLETE = """
UPDATE headrace.uploads
SET status = 'COMPLETED', lease_token = NULL, lease_until = NULL, expire_at = now() + $3::interval
WHERE id = $1 AND status = 'COMPLETING' AND lease_token = $2
"""


async def complete(tx: Tx, upload_id: str, *, token: str, remember: timedelta) -> bool:
    """Mark it as completed; repeated requests get the same answer for a while."""
    return await tx.count(COMPLETE, upload_id, token, remember) == 1


REOPEN = """
UPDATE headrace.uploads SET status = 'OPEN', lease_token = NULL, lease_until = NULL, error_code = $3
WHERE id = $1 AND status = 'COMPLETING' AND lease_token = $2
"""


async def reopen(tx: Tx, upload_id: str, *, token: str, error_code: str) -> bool:
    """Completing failed for now: more parts, or another try."""
    return await tx.count(REOPEN, upload_id, token, error_code) == 1


ABORT = f"""
UPDATE headrace.uploads
SET status = 'ABORTED', lease_token = NULL, lease_until = NULL, error_code = $3
WHERE id = $1 AND (status = 'OPEN' OR status = 'COMPLETING' AND lease_token = $2)
RETURNING {_COLUMNS}
"""


async def abort(tx: Tx, upload_id: str, *, token: str | None = None, error_code: str | None = None) -> Upload | None:
    """Abort it; its bytes go next. One that is being completed is aborted only by the process that completes it."""
    row = await tx.fetchrow(ABORT, upload_id, token, error_code)
    return None if row is None else upload_of(row)


# A streamed upload is remembered by its file alone.
FINISH_STREAM = "DELETE FROM headrace.uploads WHERE id = $1 AND status = 'OPEN' AND method = 'STREAM'"


async def finish_stream(tx: Tx, upload_id: str) -> bool:
    return await tx.count(FINISH_STREAM, upload_id) == 1


ABORT_EXPIRED = f"""
UPDATE headrace.uploads
SET status = 'ABORTED', lease_token = NULL, lease_until = NULL, error_code = coalesce(error_code, 'upload_expired')
WHERE id = ANY (ARRAY(
  SELECT id FROM headrace.uploads
  WHERE expire_at < coalesce($2, now())
    AND (status = 'OPEN' OR status = 'COMPLETING' AND lease_until < coalesce($2, now()))
  ORDER BY expire_at LIMIT $1 FOR UPDATE SKIP LOCKED
))
RETURNING {_COLUMNS}
"""


async def abort_expired(tx: Tx, limit: int, *, now: datetime | None = None) -> Sequence[Upload]:
    """Abort uploads that were not completed in time, except those that are just being completed."""
    return [upload_of(row) for row in await tx.fetch(ABORT_EXPIRED, limit, now)]


TO_CLEAN = f"""
SELECT {_COLUMNS} FROM headrace.uploads WHERE status = 'ABORTED' AND ($2::varchar IS NULL OR user_id = $2)
ORDER BY expire_at LIMIT $1
"""


async def list_to_clean(tx: Tx, limit: int, *, user_id: str | None = None) -> Sequence[Upload]:
    return [upload_of(row) for row in await tx.fetch(TO_CLEAN, limit, user_id)]


FORGET = "DELETE FROM headrace.uploads WHERE id = $1 AND status = 'ABORTED'"


async def forget(tx: Tx, upload_id: str) -> None:
    """Its bytes are gone."""
    await tx.execute(FORGET, upload_id)


FORGET_COMPLETED = """
DELETE FROM headrace.uploads WHERE id = ANY (ARRAY(
  SELECT id FROM headrace.uploads
  WHERE status = 'COMPLETED' AND expire_at < now() ORDER BY expire_at LIMIT $1 FOR UPDATE SKIP LOCKED
))
"""


async def forget_completed(tx: Tx, limit: int) -> int:
    return await tx.count(FORGET_COMPLETED, limit)


ABORT_OF_USER = """
UPDATE headrace.uploads SET status = 'ABORTED', lease_token = NULL, lease_until = NULL
WHERE id = ANY (ARRAY(
  SELECT id FROM headrace.uploads WHERE user_id = $1 AND status IN ('OPEN', 'COMPLETING') LIMIT $2
))
"""
DELETE_COMPLETED_OF_USER = "DELETE FROM headrace.uploads WHERE user_id = $1 AND status = 'COMPLETED'"

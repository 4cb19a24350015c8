"""SQL of task_results."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from headrace.assets.model import Result
from headrace.database import Row, Tx

_COLUMNS = """result.task_id, task.user_id, result_bucket, result_key, file_name, mime_type, size_bytes, sha256,
  preview_bucket, preview_key, preview_mime_type, preview_size_bytes, metrics_json, comparison_key,
  comparison_size_bytes, result.expire_at,
  result.created_at"""


def result_of(row: Row) -> Result:
    return Result(**dict(row))


# A task that is run again after its end has a new result; what the old one named is an orphan then.
RECORD = """
INSERT INTO headrace.task_results AS result
  (task_id, result_bucket, result_key, file_name, mime_type, size_bytes, sha256, preview_bucket, preview_key,
   preview_mime_type, preview_size_bytes, metrics_json, comparison_key, comparison_size_bytes, expire_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, now() + $15::interval)
ON CONFLICT ON CONSTRAINT uk_task_results_task_id DO UPDATE SET
  result_bucket = excluded.result_bucket, result_key = excluded.result_key, file_name = excluded.file_name,
  mime_type = excluded.mime_type, size_bytes = excluded.size_bytes, sha256 = excluded.sha256,
  preview_bucket = excluded.preview_bucket, preview_key = excluded.preview_key,
  preview_mime_type = excluded.preview_mime_type, preview_size_bytes = excluded.preview_size_bytes,
  metrics_json = excluded.metrics_json, comparison_key = excluded.comparison_key,
  comparison_size_bytes = excluded.comparison_size_bytes, expire_at = excluded.expire_at,
  deleted_at = NULL, purged_at = NULL, updated_at = now()
"""


async def record(tx: Tx, task_id: str, values: Sequence[Any], keep: timedelta | None) -> None:
    await tx.execute(RECORD, task_id, *values, keep)


GET = f"""
SELECT {_COLUMNS}
FROM headrace.task_results AS result JOIN headrace.tasks AS task ON task.id = result.task_id
WHERE result.task_id = $1 AND result.deleted_at IS NULL AND task.deleted_at IS NULL AND task.status = 'SUCCEEDED'
"""


async def find(tx: Tx, task_id: str) -> Result | None:
    row = await tx.fetchrow(GET, task_id)
    return None if row is None else result_of(row)


EXPIRE = """
UPDATE headrace.task_results SET deleted_at = now()
WHERE id = ANY (ARRAY(
  SELECT id FROM headrace.task_results
  WHERE expire_at < coalesce($2, now()) AND deleted_at IS NULL ORDER BY expire_at LIMIT $1 FOR UPDATE SKIP LOCKED
))
"""


async def expire(tx: Tx, limit: int, *, now: datetime | None = None) -> int:
    return await tx.count(EXPIRE, limit, now)


TO_PURGE = """
SELECT result.id, result_bucket, result_key, mime_type, preview_bucket, preview_key, comparison_key
FROM headrace.task_results AS result JOIN headrace.tasks AS task ON task.id = result.task_id
WHERE purged_at IS NULL AND (result.deleted_at IS NOT NULL OR task.deleted_at IS NOT NULL)
  AND ($2::varchar IS NULL OR task.user_id = $2)
LIMIT $1
"""


async def list_to_purge(tx: Tx, limit: int, *, user_id: str | None = None) -> Sequence[Row]:
    return await tx.fetch(TO_PURGE, limit, user_id)


# Only while it still names these bytes: a task that ran again has others by now.
MARK_PURGED = """
UPDATE headrace.task_results
SET purged_at = now(), deleted_at = coalesce(deleted_at, now()), file_name = NULL, metrics_json = NULL
WHERE id = $1 AND result_key = $2 AND purged_at IS NULL
"""


async def mark_purged(tx: Tx, result_id: int, key: str) -> None:
    await tx.execute(MARK_PURGED, result_id, key)


WITH_STEP_FILES = """
SELECT task.id, task.user_id FROM headrace.tasks AS task
WHERE task.deleted_at IS NOT NULL AND ($2::varchar IS NULL OR task.user_id = $2)
  AND EXISTS (SELECT FROM headrace.task_steps AS step WHERE step.task_id = task.id AND step.detail_json ? 'files')
ORDER BY task.deleted_at LIMIT $1
"""


async def list_with_step_files(tx: Tx, limit: int, *, user_id: str | None = None) -> Sequence[Row]:
    """Deleted tasks whose steps name files in storage."""
    return await tx.fetch(WITH_STEP_FILES, limit, user_id)


FORGET_STEP_FILES = """
UPDATE headrace.task_steps SET detail_json = detail_json - 'files' WHERE task_id = $1 AND detail_json ? 'files'
"""


async def forget_step_files(tx: Tx, task_id: str) -> None:
    await tx.execute(FORGET_STEP_FILES, task_id)


DELETE_OF_USER = """
UPDATE headrace.task_results SET deleted_at = now()
WHERE id = ANY (ARRAY(
  SELECT result.id FROM headrace.task_results AS result JOIN headrace.tasks AS task ON task.id = result.task_id
  WHERE task.user_id = $1 AND result.deleted_at IS NULL LIMIT $2
))
"""

"""SQL of the sweep: the owners of stored bytes. One statement reads one snapshot, and rows precede their bytes."""

from collections.abc import Mapping, Sequence

from headrace.assets.model import Asset, Kind
from headrace.assets.store.assets import COLUMNS, NOT_OVER, asset_of
from headrace.database import Tx

_TASK_AT_WORK = f"""EXISTS (
    SELECT FROM headrace.tasks WHERE id = split_part(stored.key, '/', 2) AND status IN {NOT_OVER}
  )"""
_ALIVE: Mapping[Kind, str] = {
    Kind.MEDIA: """EXISTS (
    SELECT FROM headrace.assets
    WHERE split_part(storage_key, '#', 1) = stored.key AND storage_bucket = 'media' AND purged_at IS NULL
  ) OR EXISTS (
    SELECT FROM headrace.uploads WHERE storage_key = stored.key AND status IN ('OPEN', 'COMPLETING')
  )""",
    Kind.RESULT: f"""EXISTS (
    SELECT FROM headrace.task_results WHERE result_key = stored.key AND purged_at IS NULL
  ) OR {_TASK_AT_WORK}""",
    # Of a file, while it exists; of a result, as long as the result.
    Kind.PREVIEW: f"""EXISTS (
    SELECT FROM headrace.assets
    WHERE id = split_part(split_part(stored.key, '/', 2), '.', 1) AND status = 'UPLOADED'
  ) OR EXISTS (
    SELECT FROM headrace.task_results
    WHERE task_id = split_part(stored.key, '/', 2) AND purged_at IS NULL
      AND stored.key IN (preview_key, comparison_key, result_key || '.slides.pdf')
  ) OR {_TASK_AT_WORK}""",
    # A day longer than the task: one that failed may be tried again by hand, from the step where it stopped.
    Kind.STEP: f"""{_TASK_AT_WORK} OR EXISTS (
    SELECT FROM headrace.tasks
    WHERE id = split_part(stored.key, '/', 2) AND finished_at > now() - interval '1 day' AND deleted_at IS NULL
  )""",
}


async def list_orphans(tx: Tx, kind: Kind, keys: Sequence[str]) -> Sequence[str]:
    """Those of these keys that have no owner."""
    rows = await tx.fetch(
        f"SELECT stored.key FROM unnest($1::text[]) AS stored (key) WHERE NOT ({_ALIVE[kind]})", list(keys)
    )
    return [row["key"] for row in rows]


ALIVE_UPLOADS = "SELECT id FROM headrace.uploads WHERE id = ANY ($1) AND status <> 'COMPLETED'"


async def list_alive_uploads(tx: Tx, upload_ids: Sequence[str]) -> frozenset[str]:
    return frozenset(row["id"] for row in await tx.fetch(ALIVE_UPLOADS, list(upload_ids)))


TO_CHECK = f"""
SELECT {COLUMNS} FROM headrace.assets WHERE status = 'UPLOADED' ORDER BY checked_at NULLS FIRST LIMIT $1
"""


async def list_to_check(tx: Tx, limit: int) -> Sequence[Asset]:
    return [asset_of(row) for row in await tx.fetch(TO_CHECK, limit)]


CHECKED = "UPDATE headrace.assets SET checked_at = now() WHERE id = ANY ($1)"


async def mark_checked(tx: Tx, asset_ids: Sequence[str]) -> None:
    await tx.execute(CHECKED, list(asset_ids))

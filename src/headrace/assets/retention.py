"""How rows of deleted files go, long after their bytes."""

from headrace.purging import RowRetention

ASSETS = RowRetention(
    "assets",
    # It stays as long as a task names it: the task refers to its source.
    """
SELECT id FROM headrace.assets AS asset
WHERE status = 'DELETED' AND deleted_at < $1 AND purged_at IS NOT NULL
  AND NOT EXISTS (SELECT FROM headrace.tasks WHERE input_asset_id = asset.id)
ORDER BY deleted_at LIMIT $2 FOR UPDATE SKIP LOCKED
""",
    cron="30 2 * * *",
    description="Removes rows of files that were deleted long ago and that no task names.",
)

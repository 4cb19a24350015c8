-- headrace: no-transaction
-- Rows of files that were deleted long ago, for who removes them.
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_purged;
CREATE INDEX CONCURRENTLY idx_assets_purged ON headrace.assets (deleted_at)
WHERE status = 'DELETED' AND purged_at IS NOT NULL;

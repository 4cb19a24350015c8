-- headrace: no-transaction
-- Who shares an object; what has to go, and when; what the sweep has not seen for longest.
ALTER TABLE headrace.assets VALIDATE CONSTRAINT ck_assets_purged;
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_object;
CREATE INDEX CONCURRENTLY idx_assets_object ON headrace.assets (split_part(storage_key, '#', 1));
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_user_sha256;
CREATE INDEX CONCURRENTLY idx_assets_user_sha256 ON headrace.assets (user_id, sha256) WHERE status = 'UPLOADED';
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_expire_at;
CREATE INDEX CONCURRENTLY idx_assets_expire_at ON headrace.assets (expire_at) WHERE status = 'UPLOADED';
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_to_purge;
CREATE INDEX CONCURRENTLY idx_assets_to_purge ON headrace.assets (deleted_at) WHERE status = 'DELETED' AND purged_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_checked_at;
CREATE INDEX CONCURRENTLY idx_assets_checked_at ON headrace.assets (checked_at NULLS FIRST) WHERE status = 'UPLOADED';
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_task_results_result_key;
CREATE INDEX CONCURRENTLY idx_task_results_result_key ON headrace.task_results (result_key);

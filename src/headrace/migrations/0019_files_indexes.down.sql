-- headrace: no-transaction
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_task_results_result_key;
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_checked_at;
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_to_purge;
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_expire_at;
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_user_sha256;
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_object;

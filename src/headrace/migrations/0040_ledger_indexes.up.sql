-- headrace: no-transaction
-- Few entries have these sources: a list by source finds them here, and other entries pay nothing.
-- headrace: month by month
CREATE INDEX CONCURRENTLY idx_usage_ledger_rare_source ON headrace.usage_ledger (source, created_at DESC, id DESC)
  WHERE source IN ('TASK_CANCEL', 'TASK_FAIL', 'MANUAL_ADJUST', 'SUBSCRIPTION_GRANT');
-- headrace: month by month
CREATE INDEX CONCURRENTLY idx_usage_ledger_user_rare_source ON headrace.usage_ledger
  (user_id, source, created_at DESC, id DESC)
  WHERE source IN ('TASK_CANCEL', 'TASK_FAIL', 'MANUAL_ADJUST', 'SUBSCRIPTION_GRANT');
-- Entries of an entitlement, in the order of its list.
-- headrace: month by month
CREATE INDEX CONCURRENTLY idx_usage_ledger_entitlement_created_at ON headrace.usage_ledger
  (entitlement_id, created_at DESC);
-- PostgreSQL drops no index of a partitioned table concurrently.
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX IF EXISTS headrace.idx_usage_ledger_entitlement_id;

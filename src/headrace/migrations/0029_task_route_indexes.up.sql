-- headrace: no-transaction
-- Exactly the order of taking, route by route; a row leaves it when it is taken.
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_task_queue_claim;
CREATE INDEX CONCURRENTLY idx_task_queue_claim ON headrace.task_queue (route_id, precedence, lane_id, run_at, seq)
  WHERE worker IS NULL AND NOT delayed;
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_task_queue_delayed;
CREATE INDEX CONCURRENTLY idx_task_queue_delayed ON headrace.task_queue (run_at, seq) WHERE delayed;
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_task_queue_ready;
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_task_lanes_lookup;
CREATE INDEX CONCURRENTLY idx_task_lanes_lookup ON headrace.task_lanes
  (queue, task_type, user_id, limit_key, labels, only_once, id) WHERE retired_at IS NULL;
-- No longer unique: the first submission into a lane, while uncommitted, would hold up every other one.
ALTER TABLE headrace.task_lanes DROP CONSTRAINT IF EXISTS uk_task_lanes;

-- headrace: no-transaction
-- Runs of one task type among everybody's, with a state and without: as idx_task_executions_user_state, and for the same
-- reason with a collation of its own.
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_task_executions_type_state;
CREATE INDEX CONCURRENTLY idx_task_executions_type_state ON headrace.task_executions
  (task_type, state COLLATE "C", scheduled_at DESC, execution_uid DESC);

DROP INDEX headrace.idx_task_executions_user_state;
DROP INDEX headrace.idx_task_executions_user_manual;
ALTER TABLE headrace.task_executions ALTER COLUMN user_id DROP NOT NULL;

-- The runs that were there before 0033, and the indexes of their lists. Millions may have ended, and nobody touches those
-- any more: while they are filled, schedules fire and runs move. Whoever writes a run waits from the first index on.
UPDATE headrace.task_executions AS run SET user_id = schedule.user_id
FROM headrace.scheduled_tasks AS schedule
WHERE schedule.uid = run.task_uid AND run.user_id IS NULL AND run.finished_at IS NOT NULL;

-- One index for lists with and without a state: without, the states are merged. Its collation sets it apart from the
-- index on states, which looks as good where a state is rare, and leads through everybody's.
CREATE INDEX idx_task_executions_user_state ON headrace.task_executions
  (user_id, state COLLATE "C", scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_user_manual ON headrace.task_executions
  (user_id, scheduled_at DESC, execution_uid DESC) WHERE trigger_type = 'manual';

-- Those that were under way.
UPDATE headrace.task_executions AS run SET user_id = schedule.user_id
FROM headrace.scheduled_tasks AS schedule
WHERE schedule.uid = run.task_uid AND run.user_id IS NULL;
ALTER TABLE headrace.task_executions ALTER COLUMN user_id SET NOT NULL;

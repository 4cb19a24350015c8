DROP INDEX headrace.idx_scheduled_tasks_cancel_running;
-- Names were unique over all users: of several that are equal the oldest keeps its own.
UPDATE headrace.scheduled_tasks AS schedule
SET name = left(schedule.name, 200) || ' (' || schedule.uid || ')'
FROM (
  SELECT uid, row_number() OVER (PARTITION BY name ORDER BY created_at, uid) AS place
  FROM headrace.scheduled_tasks WHERE deleted_at IS NULL
) AS ranked
WHERE ranked.uid = schedule.uid AND ranked.place > 1;
CREATE UNIQUE INDEX uk_scheduled_tasks_name ON headrace.scheduled_tasks (name) WHERE deleted_at IS NULL;
DROP INDEX headrace.uk_scheduled_tasks_user_name;

UPDATE headrace.scheduled_tasks AS schedule
SET total_executions = total_executions + retried_attempts,
    failure_executions = failure_executions + least(retried_attempts, (
      SELECT count(*) FROM headrace.task_executions AS earlier
      JOIN headrace.task_executions AS follower
        ON follower.task_uid = earlier.task_uid AND follower.scheduled_at = earlier.scheduled_at
       AND follower.trigger_type = earlier.trigger_type AND follower.retry_count = earlier.retry_count + 1
       AND follower.task_id IS NOT DISTINCT FROM earlier.task_id
      WHERE earlier.task_uid = schedule.uid AND earlier.state IN ('failure', 'timeout')
    ))
WHERE retried_attempts > 0;
ALTER TABLE headrace.scheduled_tasks
  DROP COLUMN overlap_policy, DROP COLUMN max_waiting, DROP COLUMN retried_attempts;

COMMENT ON COLUMN headrace.scheduled_tasks.total_executions IS 'Runs that are over. With the counts below it changes in the transaction of a run''s end.';
COMMENT ON COLUMN headrace.scheduled_tasks.failure_executions IS 'Ended in failure or timeout. Cancelled and interrupted runs count in the total only.';
COMMENT ON COLUMN headrace.scheduled_tasks.skipped_runs IS NULL;

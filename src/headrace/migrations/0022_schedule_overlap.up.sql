-- headrace: no-transaction
-- What becomes of a due time that finds no slot; names for their owner; runs counted by due time, and attempts apart.

ALTER TABLE headrace.scheduled_tasks ADD COLUMN IF NOT EXISTS overlap_policy varchar(16) NOT NULL DEFAULT 'queue_all';
ALTER TABLE headrace.scheduled_tasks ADD COLUMN IF NOT EXISTS max_waiting integer;
ALTER TABLE headrace.scheduled_tasks ADD COLUMN IF NOT EXISTS retried_attempts integer NOT NULL DEFAULT 0;

ALTER TABLE headrace.scheduled_tasks DROP CONSTRAINT IF EXISTS ck_scheduled_tasks_overlap_policy;
ALTER TABLE headrace.scheduled_tasks ADD CONSTRAINT ck_scheduled_tasks_overlap_policy CHECK (
  overlap_policy IN ('queue_all', 'queue_one', 'skip', 'cancel_running')
) NOT VALID;
ALTER TABLE headrace.scheduled_tasks VALIDATE CONSTRAINT ck_scheduled_tasks_overlap_policy;
ALTER TABLE headrace.scheduled_tasks DROP CONSTRAINT IF EXISTS ck_scheduled_tasks_max_waiting;
ALTER TABLE headrace.scheduled_tasks ADD CONSTRAINT ck_scheduled_tasks_max_waiting CHECK (
  max_waiting IS NULL OR (max_waiting >= 1 AND overlap_policy = 'queue_all')
) NOT VALID;
ALTER TABLE headrace.scheduled_tasks VALIDATE CONSTRAINT ck_scheduled_tasks_max_waiting;
ALTER TABLE headrace.scheduled_tasks DROP CONSTRAINT IF EXISTS ck_scheduled_tasks_retried_attempts;
ALTER TABLE headrace.scheduled_tasks ADD CONSTRAINT ck_scheduled_tasks_retried_attempts CHECK (retried_attempts >= 0)
  NOT VALID;
ALTER TABLE headrace.scheduled_tasks VALIDATE CONSTRAINT ck_scheduled_tasks_retried_attempts;

COMMENT ON COLUMN headrace.scheduled_tasks.overlap_policy IS 'A due time that finds max_concurrent runs under way: waits, waits if no other does, is skipped, or has the oldest canceled.';
COMMENT ON COLUMN headrace.scheduled_tasks.max_waiting IS 'With queue_all: how many may wait; further due times are skipped. Null: any number.';
COMMENT ON COLUMN headrace.scheduled_tasks.retried_attempts IS 'Attempts that were followed by another. With total_executions they are all attempts that are over.';
COMMENT ON COLUMN headrace.scheduled_tasks.total_executions IS 'Runs that are over, each due time once, whatever its attempts. With the counts beside it it changes in the transaction of a run''s end.';
COMMENT ON COLUMN headrace.scheduled_tasks.failure_executions IS 'Runs whose last attempt ended in failure or timeout. Cancelled and interrupted ones count in the total only.';
COMMENT ON COLUMN headrace.scheduled_tasks.skipped_runs IS 'Due times that did not run: missed and not made up for, or left out by overlap_policy.';

-- Attempts counted as runs so far. What retention has removed of the history stays counted as it was. Run again, this
-- passes over the schedules that it has done.
-- headrace: few rows
UPDATE headrace.scheduled_tasks AS schedule
SET total_executions = schedule.total_executions - counted.retried,
    failure_executions = greatest(0, schedule.failure_executions - counted.failed),
    consecutive_failures = least(greatest(0, schedule.consecutive_failures - counted.recent),
                                 greatest(0, schedule.failure_executions - counted.failed)),
    retried_attempts = counted.retried
FROM (
  SELECT follower.task_uid, count(*) AS retried,
         count(*) FILTER (WHERE coalesce(earlier.state, 'failure') IN ('failure', 'timeout')) AS failed,
         count(*) FILTER (WHERE earlier.state IN ('failure', 'timeout') AND NOT EXISTS (
           SELECT FROM headrace.task_executions AS later
           WHERE later.task_uid = earlier.task_uid AND later.state = 'success'
             AND (later.finished_at, later.id) > (earlier.finished_at, earlier.id)
         )) AS recent
  FROM headrace.task_executions AS follower
  LEFT JOIN headrace.task_executions AS earlier
    ON earlier.task_uid = follower.task_uid AND earlier.scheduled_at = follower.scheduled_at
   AND earlier.trigger_type = follower.trigger_type AND earlier.retry_count = follower.retry_count - 1
   AND earlier.task_id IS NOT DISTINCT FROM follower.task_id
  WHERE follower.retry_count > 0
  GROUP BY follower.task_uid
) AS counted
WHERE schedule.uid = counted.task_uid AND schedule.retried_attempts = 0
  AND schedule.total_executions >= counted.retried;

DROP INDEX CONCURRENTLY IF EXISTS headrace.uk_scheduled_tasks_user_name;
CREATE UNIQUE INDEX CONCURRENTLY uk_scheduled_tasks_user_name ON headrace.scheduled_tasks (user_id, name)
  WHERE deleted_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS headrace.uk_scheduled_tasks_name;
-- Those few whose running runs are looked after.
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_scheduled_tasks_cancel_running;
CREATE INDEX CONCURRENTLY idx_scheduled_tasks_cancel_running ON headrace.scheduled_tasks (uid)
  WHERE overlap_policy = 'cancel_running';

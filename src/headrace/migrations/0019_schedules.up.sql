-- Firing schedules and following their runs. docs/why/schedules.md tells how it fits together.

ALTER TABLE headrace.scheduled_tasks
  ADD COLUMN max_extension_seconds integer NOT NULL DEFAULT 0,
  ADD CONSTRAINT ck_scheduled_tasks_max_extension_seconds CHECK (max_extension_seconds >= 0);
COMMENT ON COLUMN headrace.scheduled_tasks.max_extension_seconds IS 'How much longer than max_duration_seconds a run may ask to run.';
COMMENT ON COLUMN headrace.scheduled_tasks.total_executions IS 'Runs that are over. With the counts below it changes in the transaction of a run''s end.';
COMMENT ON COLUMN headrace.scheduled_tasks.last_executed_at IS 'When the latest of the runs that are over began.';

-- Counts change with every run and are in no index: with room on the page such an update touches none.
ALTER TABLE headrace.scheduled_tasks SET (fillfactor = 50);

ALTER TABLE headrace.task_executions ADD COLUMN deadline_at timestamptz;
COMMENT ON COLUMN headrace.task_executions.deadline_at IS 'When it is asked to stop, by the database''s clock; later after an extension.';

-- Lists come in the order of due times. The same searches as before, and the rows come in order.
DROP INDEX headrace.idx_task_executions_task_uid;
DROP INDEX headrace.idx_task_executions_state;
CREATE INDEX idx_task_executions_task_uid ON headrace.task_executions (task_uid, scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_state ON headrace.task_executions (state, scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_scheduled_at ON headrace.task_executions (scheduled_at DESC, execution_uid DESC);
-- Few beside the others, and so their own.
CREATE INDEX idx_task_executions_manual ON headrace.task_executions (scheduled_at DESC, execution_uid DESC)
  WHERE trigger_type = 'manual';
-- What takes up a slot of max_concurrent: it has a task. And what waits for one.
CREATE INDEX idx_task_executions_active ON headrace.task_executions (task_uid)
  WHERE state IN ('pending', 'running') AND task_id IS NOT NULL;
CREATE INDEX idx_task_executions_waiting ON headrace.task_executions (task_uid, scheduled_at, id)
  WHERE state = 'pending' AND task_id IS NULL;


-- Runs move with their tasks: starts, ends, the row of the next attempt, and the schedule's counts. One entry for each
-- task; a column that does not apply is null. Gives the schedules that have runs waiting for a slot, for one may be free.
--
-- Written like finish_tasks, so that no statistics can spoil it: rows are looked up one by one.
CREATE FUNCTION headrace.follow_executions(
  task_ids text[], schedule_uids text[], workers text[], starts timestamptz[], timeouts integer[], states text[],
  agains boolean[], fresh_uids text[], results text[], messages text[], stacks text[]
)
RETURNS SETOF text
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  at timestamptz;
BEGIN
  -- In one order for all, and before any run is touched: two batches do not deadlock, and the counts of a schedule
  -- change one transaction after the other. A start changes no count and holds up nobody.
  PERFORM FROM headrace.scheduled_tasks AS schedule
  WHERE schedule.uid IN (
    SELECT given.uid FROM unnest(schedule_uids, states) AS given (uid, state) WHERE given.state IS NOT NULL
  )
  ORDER BY schedule.uid
  FOR NO KEY UPDATE;
  -- After the wait for the lock: ends of one schedule are dated in the order in which they are counted.
  at := clock_timestamp();

  -- The drawn states lead through running, also for one that is canceled while it waits.
  UPDATE headrace.task_executions AS run
  SET state = 'running', run_by = coalesce(given.worker, 'nobody'), started_at = coalesce(given.started_at, at),
      deadline_at = given.started_at + make_interval(secs => given.timeout), updated_at = at
  FROM unnest(task_ids, workers, starts, timeouts) AS given (task_id, worker, started_at, timeout)
  WHERE run.task_id = given.task_id AND run.state = 'pending';

  RETURN QUERY
  WITH ended AS (
    UPDATE headrace.task_executions AS run
    SET state = CASE WHEN judged.late THEN 'timeout' ELSE given.state END,
        finished_at = greatest(at, run.started_at),
        duration_ms = (extract(epoch FROM greatest(at, run.started_at) - run.started_at) * 1000)::bigint,
        progress = CASE WHEN given.state = 'success' THEN 100 ELSE run.progress END,
        result = given.result,
        error_message = CASE WHEN judged.late AND given.state IS DISTINCT FROM 'timeout'
                             THEN 'It ended after its deadline and its grace; what it said of itself: ' || given.state || '.'
                             ELSE given.message END,
        error_stack = given.stack,
        updated_at = at
    FROM unnest(task_ids, states, agains, fresh_uids, results, messages, stacks)
         AS given (task_id, state, again, fresh_uid, result, message, stack)
    CROSS JOIN LATERAL (
      SELECT held.id,
             -- The database's clock decides, whatever the worker says; a cancellation is no question of time.
             given.state <> 'cancelled' AND coalesce(
               at > held.deadline_at + make_interval(secs => schedule.timeout_grace_period), false) AS late
      FROM headrace.task_executions AS held
      JOIN headrace.scheduled_tasks AS schedule ON schedule.uid = held.task_uid
      WHERE held.task_id = given.task_id AND held.state = 'running'
      OFFSET 0
    ) AS judged
    WHERE given.state IS NOT NULL AND run.id = judged.id
    RETURNING run.*, given.again, given.fresh_uid
  ), following AS (
    INSERT INTO headrace.task_executions
      (task_uid, task_name, task_type, execution_uid, task_id, scheduled_at, state, retry_count, trigger_type, trigger_by)
    SELECT task_uid, task_name, task_type, fresh_uid, task_id, scheduled_at, 'pending', retry_count + 1, trigger_type, trigger_by
    FROM ended
    WHERE again
  ), ranked AS (
    -- In the order of ids, as they are read later: all of this batch end at one instant.
    SELECT *, coalesce(max(id) FILTER (WHERE state = 'success') OVER (PARTITION BY task_uid), 0) AS last_success
    FROM ended
  ), counted AS (
    SELECT task_uid,
           count(*) AS total,
           count(*) FILTER (WHERE state = 'success') AS successes,
           count(*) FILTER (WHERE state IN ('failure', 'timeout')) AS failures,
           count(*) FILTER (WHERE state IN ('failure', 'timeout') AND id > last_success) AS recent,
           max(last_success) > 0 AS reset,
           max(started_at) AS started_at,
           (array_agg(error_message ORDER BY id DESC) FILTER (WHERE state IN ('failure', 'timeout')))[1] AS error
    FROM ranked
    GROUP BY task_uid
  )
  UPDATE headrace.scheduled_tasks AS schedule
  SET total_executions = schedule.total_executions + counted.total,
      success_executions = schedule.success_executions + counted.successes,
      failure_executions = schedule.failure_executions + counted.failures,
      consecutive_failures = CASE WHEN counted.reset THEN 0 ELSE schedule.consecutive_failures END + counted.recent,
      last_executed_at = greatest(schedule.last_executed_at, counted.started_at),
      last_failure_error = coalesce(counted.error, schedule.last_failure_error),
      updated_at = at
  FROM counted
  WHERE schedule.uid = counted.task_uid
  RETURNING CASE WHEN EXISTS (
    SELECT FROM headrace.task_executions AS waiting
    WHERE waiting.task_uid = schedule.uid AND waiting.state = 'pending' AND waiting.task_id IS NULL
  ) THEN schedule.uid::text END;
END
$$;
COMMENT ON FUNCTION headrace.follow_executions(text[], text[], text[], timestamptz[], integer[], text[], boolean[], text[], text[], text[], text[]) IS 'Moves the runs of schedules together with their tasks.';

GRANT EXECUTE ON FUNCTION
  headrace.follow_executions(text[], text[], text[], timestamptz[], integer[], text[], boolean[], text[], text[], text[], text[])
TO headrace_app;

-- Runs move with their tasks: starts, ends, the row of the next attempt, and the schedule's counts. One entry for each
-- task; a column that does not apply is null. Runs that never get a task are counted elsewhere: COUNT_REFUSED in
-- schedules/store/firing.py, CANCEL_HELD in schedules/store/executions.py.
-- Gives the schedules that have runs waiting for a slot, for one may be free.
--
-- Written like finish_tasks, so that no statistics can spoil it: rows are looked up one by one.
CREATE OR REPLACE FUNCTION headrace.follow_executions(
  task_ids text[], schedule_uids text[], workers text[], starts timestamptz[], timeouts integer[], states text[],
  agains boolean[], fresh_uids text[], results text[], messages text[], stacks text[]
)
RETURNS SETOF text
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off
SET enable_incremental_sort = off
SET plan_cache_mode = force_custom_plan SET jit = off
AS $$
DECLARE
  at timestamptz;
BEGIN
  -- In one order for all, and before any run is touched: two batches do not deadlock, and the counts of a schedule
  -- change one transaction after the other. A start changes no count and blocks nothing. By a list of keys: as a join,
  -- with sorting switched off, it would walk through all schedules there are.
  PERFORM FROM headrace.scheduled_tasks AS schedule
  WHERE schedule.uid = ANY (ARRAY(
    SELECT given.uid FROM unnest(schedule_uids, states) AS given (uid, state) WHERE given.state IS NOT NULL
  ))
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
                             -- Whoever asked it to stop has noted why.
                             WHEN given.state = 'cancelled' THEN coalesce(given.message, run.error_message)
                             ELSE given.message END,
        error_stack = given.stack,
        updated_at = at
    FROM unnest(task_ids, states, agains, fresh_uids, results, messages, stacks)
         AS given (task_id, state, again, fresh_uid, result, message, stack)
    CROSS JOIN LATERAL (
      SELECT held.id,
             -- The database's clock decides, whatever the worker says; a cancellation is no question of time.
             given.state <> 'cancelled' AND coalesce(
               at > held.deadline_at + make_interval(secs => task.grace_seconds), false) AS late
      FROM headrace.task_executions AS held
      JOIN headrace.tasks AS task ON task.id = held.task_id
      WHERE held.task_id = given.task_id AND held.state = 'running'
      OFFSET 0
    ) AS judged
    WHERE given.state IS NOT NULL AND run.id = judged.id
    RETURNING run.*, given.again, given.fresh_uid
  ), following AS (
    INSERT INTO headrace.task_executions
      (task_uid, user_id, task_name, task_type, execution_uid, task_id, scheduled_at, state, retry_count, trigger_type,
       trigger_by)
    SELECT task_uid, user_id, task_name, task_type, fresh_uid, task_id, scheduled_at, 'pending', retry_count + 1,
           trigger_type, trigger_by
    FROM ended
    WHERE again
  ), ranked AS (
    -- In the order of ids, as they are read later: all of this batch end at one instant.
    SELECT *, coalesce(max(id) FILTER (WHERE state = 'success') OVER (PARTITION BY task_uid), 0) AS last_success
    FROM ended
  ), counted AS (
    SELECT task_uid,
           -- A due time counts once, by its last attempt; those before it are counted apart.
           count(*) FILTER (WHERE NOT again) AS total,
           count(*) FILTER (WHERE again) AS retried,
           count(*) FILTER (WHERE state = 'success') AS successes,
           count(*) FILTER (WHERE state IN ('failure', 'timeout') AND NOT again) AS failures,
           count(*) FILTER (WHERE state IN ('failure', 'timeout') AND NOT again AND id > last_success) AS recent,
           max(last_success) > 0 AS reset,
           max(started_at) AS started_at,
           (array_agg(error_message ORDER BY id DESC) FILTER (WHERE state IN ('failure', 'timeout')))[1] AS error
    FROM ranked
    GROUP BY task_uid
  )
  UPDATE headrace.scheduled_tasks AS schedule
  SET total_executions = schedule.total_executions + counted.total,
      retried_attempts = schedule.retried_attempts + counted.retried,
      success_executions = schedule.success_executions + counted.successes,
      failure_executions = schedule.failure_executions + counted.failures,
      consecutive_failures = CASE WHEN counted.reset THEN 0 ELSE schedule.consecutive_failures END + counted.recent,
      last_executed_at = greatest(schedule.last_executed_at, counted.started_at),
      last_failure_error = coalesce(counted.error, schedule.last_failure_error),
      updated_at = at
  FROM counted
  WHERE schedule.uid = counted.task_uid
  RETURNING (
    SELECT schedule.uid::text FROM headrace.task_executions AS waiting
    WHERE waiting.task_uid = schedule.uid AND waiting.state = 'pending' AND waiting.task_id IS NULL
    ORDER BY waiting.scheduled_at, waiting.id LIMIT 1
  );
END
$$;
COMMENT ON FUNCTION headrace.follow_executions(text[], text[], text[], timestamptz[], integer[], text[], boolean[], text[], text[], text[], text[]) IS 'Moves the runs of schedules together with their tasks.';
GRANT EXECUTE ON FUNCTION headrace.follow_executions(text[], text[], text[], timestamptz[], integer[], text[], boolean[], text[], text[], text[], text[]) TO headrace_app;

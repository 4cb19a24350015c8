-- Whose a run is, so that everybody's list has an index (0035, with the runs that are there); and schedules that are
-- deleted before their history is.

ALTER TABLE headrace.task_executions ADD COLUMN user_id varchar(64);
COMMENT ON COLUMN headrace.task_executions.user_id IS 'Whose it is: the schedule''s owner, who never changes.';

-- For whoever writes a run and does not say whose it is.
CREATE FUNCTION headrace.fill_execution_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.user_id := (SELECT schedule.user_id FROM headrace.scheduled_tasks AS schedule WHERE schedule.uid = NEW.task_uid);
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION headrace.fill_execution_owner() IS 'A run is its schedule''s owner''s.';
CREATE TRIGGER tr_task_executions_user_id BEFORE INSERT ON headrace.task_executions
  FOR EACH ROW WHEN (NEW.user_id IS NULL) EXECUTE FUNCTION headrace.fill_execution_owner();


-- A deleted schedule is gone for everybody at once; its runs, which may be millions, go in batches, and it goes last.
ALTER TABLE headrace.scheduled_tasks
  ADD COLUMN deleted_at timestamptz,
  ADD CONSTRAINT ck_scheduled_tasks_deleted_at CHECK (deleted_at IS NULL OR (NOT enabled AND next_run IS NULL)),
  DROP CONSTRAINT uk_scheduled_tasks_name;
COMMENT ON COLUMN headrace.scheduled_tasks.deleted_at IS 'Since when it is gone for everybody; its runs go in batches, and it goes with the last.';
CREATE UNIQUE INDEX uk_scheduled_tasks_name ON headrace.scheduled_tasks (name) WHERE deleted_at IS NULL;
CREATE INDEX idx_scheduled_tasks_deleted_at ON headrace.scheduled_tasks (deleted_at) WHERE deleted_at IS NOT NULL;


-- The foreign key to tasks is checked row by row, by a plan that a session keeps. Made when there were no tasks it reads
-- the table from end to end, and each run costs as much as there are tasks. So whoever names a task plans for an index.
CREATE FUNCTION headrace.insert_executions(
  schedule_uids text[], user_ids text[], names text[], types text[], uids text[], task_ids text[], dues timestamptz[],
  refusals text[], trigger text, triggered_by text, at timestamptz
)
RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off
AS $$
BEGIN
  -- What was refused has failed: the drawn states have it running for no time.
  INSERT INTO headrace.task_executions
    (task_uid, user_id, task_name, task_type, execution_uid, task_id, scheduled_at, trigger_type, trigger_by, state,
     run_by, started_at, finished_at, error_message)
  SELECT given.uid, given.user_id, given.name, given.type, given.execution_uid, given.task_id, given.scheduled_at,
         trigger, triggered_by,
         CASE WHEN given.refused IS NULL THEN 'pending' ELSE 'failure' END,
         CASE WHEN given.refused IS NOT NULL THEN 'nobody' END,
         CASE WHEN given.refused IS NOT NULL THEN at END,
         CASE WHEN given.refused IS NOT NULL THEN at END,
         given.refused
  FROM unnest(schedule_uids, user_ids, names, types, uids, task_ids, dues, refusals)
    AS given (uid, user_id, name, type, execution_uid, task_id, scheduled_at, refused);
END
$$;
COMMENT ON FUNCTION headrace.insert_executions(text[], text[], text[], text[], text[], text[], timestamptz[], text[], text, text, timestamptz) IS 'Writes down runs that were fired, those that were refused as failed.';

CREATE FUNCTION headrace.give_tasks(uids text[], task_ids text[])
RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off
AS $$
BEGIN
  UPDATE headrace.task_executions AS run
  SET task_id = given.task_id, updated_at = now()
  FROM unnest(uids, task_ids) AS given (execution_uid, task_id)
  WHERE run.execution_uid = given.execution_uid AND run.state = 'pending' AND run.task_id IS NULL;
END
$$;
COMMENT ON FUNCTION headrace.give_tasks(text[], text[]) IS 'Notes the tasks of runs that waited for a slot.';
-- Runs that wait have an index of their own, in their order. Where statistics say that hardly anything is pending, the
-- one on states looks as good, and reads what everybody's schedules have pending, for each of them. It would have to sort.
CREATE FUNCTION headrace.look_at_schedules(uids text[], first_dues timestamptz[], last_dues timestamptz[])
RETURNS TABLE (uid text, active bigint, waiting boolean, fired timestamptz[])
LANGUAGE plpgsql STABLE ROWS 1000
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_incremental_sort = off
AS $$
BEGIN
  RETURN QUERY
  SELECT given.uid, active.number, waiting.uid IS NOT NULL, fired.times
  FROM unnest(uids, first_dues, last_dues) AS given (uid, first_due, last_due)
  CROSS JOIN LATERAL (
    SELECT count(*) AS number
    FROM headrace.task_executions AS run
    WHERE run.task_uid = given.uid AND run.state IN ('pending', 'running') AND run.task_id IS NOT NULL
    OFFSET 0
  ) AS active
  LEFT JOIN LATERAL (
    SELECT run.execution_uid AS uid FROM headrace.task_executions AS run
    WHERE run.task_uid = given.uid AND run.state = 'pending' AND run.task_id IS NULL
    ORDER BY run.scheduled_at, run.id LIMIT 1
  ) AS waiting ON true
  CROSS JOIN LATERAL (
    -- Only after next_run was set back by hand: a time that has fired does not fire again.
    SELECT array_agg(run.scheduled_at) AS times
    FROM headrace.task_executions AS run
    WHERE run.task_uid = given.uid AND run.scheduled_at BETWEEN given.first_due AND given.last_due
      AND run.trigger_type = 'scheduled' AND run.retry_count = 0
    OFFSET 0
  ) AS fired;
END
$$;
COMMENT ON FUNCTION headrace.look_at_schedules(text[], timestamptz[], timestamptz[]) IS 'How many runs of each schedule take up a slot, whether others wait for one, and which due times between two have fired.';

CREATE FUNCTION headrace.held_executions(uids text[])
RETURNS TABLE (uid text, execution_uid text, scheduled_at timestamptz)
LANGUAGE plpgsql STABLE ROWS 100
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_incremental_sort = off
AS $$
BEGIN
  RETURN QUERY
  SELECT schedule.uid::text, held.execution_uid::text, held.scheduled_at
  FROM unnest(uids) AS given (uid)
  JOIN headrace.scheduled_tasks AS schedule ON schedule.uid = given.uid AND schedule.deleted_at IS NULL
  CROSS JOIN LATERAL (
    SELECT count(*) AS number FROM headrace.task_executions AS run
    WHERE run.task_uid = schedule.uid AND run.state IN ('pending', 'running') AND run.task_id IS NOT NULL
    OFFSET 0
  ) AS active
  CROSS JOIN LATERAL (
    SELECT run.execution_uid, run.scheduled_at
    FROM headrace.task_executions AS run
    WHERE run.task_uid = schedule.uid AND run.state = 'pending' AND run.task_id IS NULL
    ORDER BY run.scheduled_at, run.id
    LIMIT greatest(0, schedule.max_concurrent - active.number)
  ) AS held;
END
$$;
COMMENT ON FUNCTION headrace.held_executions(text[]) IS 'Runs that wait for a slot, as many as there are slots.';

GRANT EXECUTE ON FUNCTION
  headrace.look_at_schedules(text[], timestamptz[], timestamptz[]),
  headrace.held_executions(text[]),
  headrace.insert_executions(text[], text[], text[], text[], text[], text[], timestamptz[], text[], text, text, timestamptz),
  headrace.give_tasks(text[], text[]),
  headrace.fill_execution_owner()
TO headrace_app;


-- As in 0028; the next attempt is the same owner's, and what waits is looked up in its own index.
CREATE OR REPLACE FUNCTION headrace.follow_executions(
  task_ids text[], schedule_uids text[], workers text[], starts timestamptz[], timeouts integer[], states text[],
  agains boolean[], fresh_uids text[], results text[], messages text[], stacks text[]
)
RETURNS SETOF text
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off
SET enable_incremental_sort = off
SET plan_cache_mode = force_custom_plan
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
  RETURNING (
    SELECT schedule.uid::text FROM headrace.task_executions AS waiting
    WHERE waiting.task_uid = schedule.uid AND waiting.state = 'pending' AND waiting.task_id IS NULL
    ORDER BY waiting.scheduled_at, waiting.id LIMIT 1
  );
END
$$;

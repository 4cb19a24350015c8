-- Runs that wait have an index of their own, in their order. Where statistics say that hardly anything is pending, the
-- one on states looks as good, and reads the pending runs of all users' schedules, for each of them. It would have to sort.
CREATE OR REPLACE FUNCTION headrace.inspect_schedules(uids text[], first_dues timestamptz[], last_dues timestamptz[])
RETURNS TABLE (uid text, active bigint, waiting boolean, fired timestamptz[])
LANGUAGE plpgsql STABLE ROWS 1000
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_incremental_sort = off SET jit = off
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
COMMENT ON FUNCTION headrace.inspect_schedules(text[], timestamptz[], timestamptz[]) IS 'How many runs of each schedule take up a slot, whether others wait for one, and which due times between two have fired.';
GRANT EXECUTE ON FUNCTION headrace.inspect_schedules(text[], timestamptz[], timestamptz[]) TO headrace_app;

CREATE OR REPLACE FUNCTION headrace.waiting_executions(uids text[])
RETURNS TABLE (uid text, execution_uid text, scheduled_at timestamptz)
LANGUAGE plpgsql STABLE ROWS 100
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_incremental_sort = off SET jit = off
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
COMMENT ON FUNCTION headrace.waiting_executions(text[]) IS 'Runs that wait for a slot, as many as there are slots.';
GRANT EXECUTE ON FUNCTION headrace.waiting_executions(text[]) TO headrace_app;

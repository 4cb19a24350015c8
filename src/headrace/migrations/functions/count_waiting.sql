CREATE OR REPLACE FUNCTION headrace.count_waiting(uids text[], most integer[])
RETURNS TABLE (uid text, waiting bigint)
LANGUAGE plpgsql STABLE ROWS 100
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_incremental_sort = off SET jit = off
AS $$
BEGIN
  RETURN QUERY
  SELECT given.uid, counted.number
  FROM unnest(uids, most) AS given (uid, most)
  CROSS JOIN LATERAL (
    SELECT count(*) AS number FROM (
      SELECT FROM headrace.task_executions AS run
      WHERE run.task_uid = given.uid AND run.state = 'pending' AND run.task_id IS NULL
      ORDER BY run.scheduled_at, run.id LIMIT given.most
    ) AS runs
  ) AS counted;
END
$$;
COMMENT ON FUNCTION headrace.count_waiting(text[], integer[]) IS 'How many runs of each schedule wait for a slot, counted up to so many.';
GRANT EXECUTE ON FUNCTION headrace.count_waiting(text[], integer[]) TO headrace_app;

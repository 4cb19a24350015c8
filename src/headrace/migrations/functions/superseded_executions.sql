-- Runs of schedules that cancel what runs: the newest max_concurrent are wanted, the others make room. Only where one
-- waits: a limit that was lowered ends nothing by itself. Each by its own small index, however long the history is.
CREATE OR REPLACE FUNCTION headrace.superseded_executions(uids text[], most integer)
RETURNS TABLE (uid text, execution_uid text, task_id text)
LANGUAGE plpgsql STABLE ROWS 10
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
BEGIN
  RETURN QUERY
  SELECT schedule.uid::text, older.execution_uid::text, older.task_id::text
  FROM headrace.scheduled_tasks AS schedule
  CROSS JOIN LATERAL (
    SELECT run.id FROM headrace.task_executions AS run
    WHERE run.task_uid = schedule.uid AND run.state = 'pending' AND run.task_id IS NULL
    ORDER BY run.scheduled_at, run.id LIMIT 1
  ) AS waiting
  CROSS JOIN LATERAL (
    SELECT ranked.execution_uid, ranked.task_id
    FROM (
      SELECT unfinished.execution_uid, unfinished.task_id,
             row_number() OVER (ORDER BY unfinished.scheduled_at DESC, unfinished.id DESC) AS place
      FROM (
        SELECT run.id, run.execution_uid, run.task_id, run.scheduled_at FROM headrace.task_executions AS run
        WHERE run.task_uid = schedule.uid AND run.state IN ('pending', 'running') AND run.task_id IS NOT NULL
        UNION ALL
        SELECT run.id, run.execution_uid, NULL, run.scheduled_at FROM headrace.task_executions AS run
        WHERE run.task_uid = schedule.uid AND run.state = 'pending' AND run.task_id IS NULL
      ) AS unfinished
    ) AS ranked
    WHERE ranked.place > schedule.max_concurrent
  ) AS older
  LEFT JOIN headrace.tasks AS task ON task.id = older.task_id
  WHERE schedule.overlap_policy = 'cancel_running' AND (uids IS NULL OR schedule.uid = ANY (uids))
    AND task.cancel_requested_at IS NULL
  LIMIT most;
END
$$;
COMMENT ON FUNCTION headrace.superseded_executions(text[], integer) IS 'Runs that must make room for later ones of their schedule and were not asked to stop yet; of these schedules, or of all.';
GRANT EXECUTE ON FUNCTION headrace.superseded_executions(text[], integer) TO headrace_app;

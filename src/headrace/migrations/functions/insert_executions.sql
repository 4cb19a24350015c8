-- The foreign key to tasks is checked row by row, by a plan that a session keeps. Made when there were no tasks it reads
-- the table from end to end, and each run costs as much as there are tasks. So a call with task ids plans for an index.
CREATE OR REPLACE FUNCTION headrace.insert_executions(
  schedule_uids text[], user_ids text[], names text[], types text[], uids text[], task_ids text[], dues timestamptz[],
  refusals text[], trigger text, triggered_by text, at timestamptz
)
RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET jit = off
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
GRANT EXECUTE ON FUNCTION headrace.insert_executions(text[], text[], text[], text[], text[], text[], timestamptz[], text[], text, text, timestamptz) TO headrace_app;

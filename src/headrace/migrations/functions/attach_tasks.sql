CREATE OR REPLACE FUNCTION headrace.attach_tasks(uids text[], task_ids text[])
RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET jit = off
AS $$
BEGIN
  UPDATE headrace.task_executions AS run
  SET task_id = given.task_id, updated_at = now()
  FROM unnest(uids, task_ids) AS given (execution_uid, task_id)
  WHERE run.execution_uid = given.execution_uid AND run.state = 'pending' AND run.task_id IS NULL;
END
$$;
COMMENT ON FUNCTION headrace.attach_tasks(text[], text[]) IS 'Notes the tasks of runs that waited for a slot.';
GRANT EXECUTE ON FUNCTION headrace.attach_tasks(text[], text[]) TO headrace_app;

-- Ends a task that was submitted in SQL before its type was declared, and that the type cannot take.
CREATE OR REPLACE FUNCTION headrace.fail_unsettled(
  place bigint, task_id text, reason text, emits_events boolean, emits_always boolean
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog
AS $$
BEGIN
  DELETE FROM headrace.task_queue WHERE seq = place;
  UPDATE headrace.tasks AS written
  SET status = 'FAILED', error_code = 'fatal', error_message = reason, queue_seq = NULL, left_to_type = NULL,
      finished_at = now(), updated_at = now(), version = written.version + 1
  WHERE written.id = fail_unsettled.task_id;
  INSERT INTO headrace.task_logs (task_id, attempt, status, message)
  VALUES (fail_unsettled.task_id, 0, 'FAILED', 'Submitted in SQL before its type was declared: ' || reason);
  IF emits_events THEN
    PERFORM headrace.emit_task_events(
      NULL, ARRAY['task.failed'], ARRAY[fail_unsettled.task_id], ARRAY[0], NULL, coalesce(emits_always, false));
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.fail_unsettled(bigint, text, text, boolean, boolean) IS 'Ends a waiting task whose type, once declared, cannot take it.';
REVOKE EXECUTE ON FUNCTION headrace.fail_unsettled(bigint, text, text, boolean, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.fail_unsettled(bigint, text, text, boolean, boolean) TO headrace_app;

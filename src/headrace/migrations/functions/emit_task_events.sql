-- Writes the events of a change of tasks that have subscribers (or whose type demands events): called after the change, in
-- its transaction, so that the row lock of a task puts its events in order. Without subscribers it writes nothing.
CREATE OR REPLACE FUNCTION headrace.emit_task_events(
  event_ids text[], event_types text[], task_ids text[], attempts integer[], request_ids text[] DEFAULT NULL,
  always boolean DEFAULT false
) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF always OR headrace.wants_task_events(event_types) THEN
    PERFORM headrace.write_task_events(event_ids, event_types, task_ids, attempts, request_ids, always);
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.emit_task_events(text[], text[], text[], integer[], text[], boolean) IS 'Writes an outbox event for each change of a task with subscribers, in the order given; always: for each.';
REVOKE EXECUTE ON FUNCTION headrace.emit_task_events(text[], text[], text[], integer[], text[], boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.emit_task_events(text[], text[], text[], integer[], text[], boolean) TO headrace_app;

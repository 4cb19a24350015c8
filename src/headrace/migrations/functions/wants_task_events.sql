-- Whether anybody at all may want one of these events. Interests cannot be added from here to the end of the transaction:
-- so what is decided now is still true at the commit. The look is a statement of its own, after the lock: it sees what was
-- committed while we waited.
CREATE OR REPLACE FUNCTION headrace.wants_task_events(event_types text[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM headrace.hold_event_interests();
  RETURN EXISTS (
    SELECT FROM headrace.event_interests AS interest
    WHERE interest.pattern = ANY (ARRAY['*', 'task.*'] || event_types)
  );
END
$$;
COMMENT ON FUNCTION headrace.wants_task_events(text[]) IS 'Whether somebody wants events of tasks of one of these types; that stays true until the transaction ends.';
REVOKE EXECUTE ON FUNCTION headrace.wants_task_events(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.wants_task_events(text[]) TO headrace_app;

-- Whether one of these events may have a subscriber. No interest can be added between this call and the end of the
-- transaction, so the answer is still true at the commit. The query is a statement of its own, after the lock: it sees
-- what was committed during the wait.
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
COMMENT ON FUNCTION headrace.wants_task_events(text[]) IS 'Whether events of these types have a subscriber; that stays true until the transaction ends.';
REVOKE EXECUTE ON FUNCTION headrace.wants_task_events(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.wants_task_events(text[]) TO headrace_app;

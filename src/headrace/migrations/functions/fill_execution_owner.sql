-- For runs that are inserted without an owner.
CREATE OR REPLACE FUNCTION headrace.fill_execution_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.user_id := (SELECT schedule.user_id FROM headrace.scheduled_tasks AS schedule WHERE schedule.uid = NEW.task_uid);
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION headrace.fill_execution_owner() IS 'A run is its schedule''s owner''s.';
GRANT EXECUTE ON FUNCTION headrace.fill_execution_owner() TO headrace_app;

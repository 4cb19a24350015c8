-- A trigger of the table, so that a value changed with psql takes effect at once, too.
CREATE OR REPLACE FUNCTION headrace.notify_config_change() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM pg_notify('headrace_configs', coalesce(NEW.config_key, OLD.config_key));
  IF NEW.config_key <> OLD.config_key THEN
    PERFORM pg_notify('headrace_configs', OLD.config_key);
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION headrace.notify_config_change() IS 'Trigger: notifies headrace_configs with the key that changed.';

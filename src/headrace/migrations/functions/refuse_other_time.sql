-- The time of an audit event is in its id and decides the month; a trigger could not move the row to another. So it is
-- compared: the application writes events of now, by the database's clock. Only the owner brings those of another time,
-- when it imports.
CREATE OR REPLACE FUNCTION headrace.refuse_other_time() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF pg_has_role(current_user, 'headrace_owner', 'USAGE') THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'an event of % cannot be written now (%)', NEW.created_at, TG_NAME
    USING ERRCODE = 'insufficient_privilege', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME,
          HINT = 'Only the owner of the tables brings events of another time: see `headrace audit import`.';
END
$$;
COMMENT ON FUNCTION headrace.refuse_other_time() IS 'Trigger: refuses an event that is not of now, unless the owner brings it.';

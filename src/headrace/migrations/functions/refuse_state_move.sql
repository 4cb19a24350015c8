-- For state columns. The trigger's WHEN clause knows the allowed moves; a call is a forbidden one.
CREATE OR REPLACE FUNCTION headrace.refuse_state_move() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  state_column text := TG_ARGV[0];
BEGIN
  RAISE EXCEPTION '%: % cannot move from % to %', TG_TABLE_NAME, state_column,
    pg_catalog.to_jsonb(OLD) ->> state_column, pg_catalog.to_jsonb(NEW) ->> state_column
    USING ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
          COLUMN = state_column, CONSTRAINT = TG_NAME;
END
$$;
COMMENT ON FUNCTION headrace.refuse_state_move() IS 'Trigger: refuses a state change that is not drawn. Argument: the column.';

-- What a task costs by its type's rule. units.py does the same, and a test compares the two.
CREATE OR REPLACE FUNCTION headrace.units(rule text, payload jsonb) RETURNS integer
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog
AS $$
DECLARE
  path  text[] := (string_to_array(rule, '.'))[2:];
  value jsonb;
BEGIN
  IF cardinality(path) = 0 THEN
    RETURN rule::integer;
  END IF;
  value := payload #> path;
  -- Not in one condition: what is no number must not be read as one.
  IF jsonb_typeof(value) = 'number' THEN
    IF value::numeric BETWEEN 1 AND 1000000000 AND value::numeric = trunc(value::numeric) THEN
      RETURN value::integer;
    END IF;
  END IF;
  RAISE EXCEPTION 'the payload does not fit: % is what the task costs, and so a whole number from 1 to 1,000,000,000',
    array_to_string(path, '.')
    USING ERRCODE = 'HR004', HINT = 'The task cannot be submitted like this; nothing was written.';
END
$$;
COMMENT ON FUNCTION headrace.units(text, jsonb) IS 'What a task costs, by the units of its type.';
GRANT EXECUTE ON FUNCTION headrace.units(text, jsonb) TO headrace_app;

-- The key of a task by its type's rule; null for none. limit_keys.py does the same, and a test compares the two.
CREATE OR REPLACE FUNCTION headrace.limit_key(rule text, payload jsonb, user_id text)
RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog
AS $$
DECLARE
  path  text[] := (string_to_array(rule, '.'))[2:];
  value jsonb;
  key   text;
BEGIN
  IF rule = 'user' THEN
    RETURN user_id;
  END IF;
  value := payload #> path;
  -- One number, one key: 1 and 1.0 must not have slots of their own.
  key := CASE jsonb_typeof(value) WHEN 'number' THEN trim_scale(value::numeric)::text ELSE value #>> '{}' END;
  IF jsonb_typeof(value) IN ('object', 'array') OR length(key) > 255 THEN
    RAISE EXCEPTION 'the payload does not fit: % is the key of a limit, and so a text, a number or a boolean of at most 255 characters',
      array_to_string(path, '.')
      USING ERRCODE = 'HR004', HINT = 'The task cannot be submitted like this; nothing was written.';
  END IF;
  RETURN nullif(key, '');
END
$$;
COMMENT ON FUNCTION headrace.limit_key(text, jsonb, text) IS 'The limit key of a task, by the limit_key of its type; null for none.';
GRANT EXECUTE ON FUNCTION headrace.limit_key(text, jsonb, text) TO headrace_app;

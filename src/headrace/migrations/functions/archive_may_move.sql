CREATE OR REPLACE FUNCTION headrace.archive_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source
  WHEN target     THEN true
  WHEN 'DETACHED' THEN target = 'ARCHIVED'
  WHEN 'ARCHIVED' THEN target IN ('DETACHED', 'DROPPED')  -- back: to be written once more
  ELSE false
END;
COMMENT ON FUNCTION headrace.archive_may_move(text, text) IS 'Whether an archive may go from one state to another (or stay).';
GRANT EXECUTE ON FUNCTION headrace.archive_may_move(text, text) TO headrace_app;

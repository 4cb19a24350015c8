CREATE OR REPLACE FUNCTION headrace.execution_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source
  WHEN target    THEN true
  WHEN 'pending' THEN target = 'running'
  WHEN 'running' THEN target IN ('success', 'failure', 'timeout', 'cancelled', 'interrupted')
  ELSE false
END;
COMMENT ON FUNCTION headrace.execution_may_move(text, text) IS 'Whether a run may go from one state to another (or stay).';
GRANT EXECUTE ON FUNCTION headrace.execution_may_move(text, text) TO headrace_app;

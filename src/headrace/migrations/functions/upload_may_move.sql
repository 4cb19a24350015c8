CREATE OR REPLACE FUNCTION headrace.upload_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN source = target
  OR source = 'OPEN' AND target IN ('COMPLETING', 'ABORTED')
  OR source = 'COMPLETING' AND target IN ('OPEN', 'COMPLETED', 'ABORTED');
COMMENT ON FUNCTION headrace.upload_may_move(text, text) IS 'Whether an upload may go from one state to another (or stay).';
GRANT EXECUTE ON FUNCTION headrace.upload_may_move(text, text) TO headrace_app;

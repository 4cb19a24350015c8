CREATE OR REPLACE FUNCTION headrace.lock_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN source = target OR source = 'active';
COMMENT ON FUNCTION headrace.lock_may_move(text, text) IS 'Whether a lock may go from one state to another (or stay).';
GRANT EXECUTE ON FUNCTION headrace.lock_may_move(text, text) TO headrace_app;

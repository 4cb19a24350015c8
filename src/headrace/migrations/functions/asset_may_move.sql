CREATE OR REPLACE FUNCTION headrace.asset_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN source = target OR source = 'UPLOADED';
COMMENT ON FUNCTION headrace.asset_may_move(text, text) IS 'Whether a file may go from one state to another (or stay).';
GRANT EXECUTE ON FUNCTION headrace.asset_may_move(text, text) TO headrace_app;

CREATE OR REPLACE FUNCTION headrace.delivery_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source
  WHEN target     THEN true
  WHEN 'PENDING'  THEN target IN ('SUCCESS', 'RETRYING', 'FAILED', 'DEAD')
  WHEN 'RETRYING' THEN target IN ('SUCCESS', 'FAILED', 'DEAD')  -- a late answer; or no next attempt is due any more
  ELSE false
END;
COMMENT ON FUNCTION headrace.delivery_may_move(text, text) IS 'Whether an attempt to deliver may go from one state to another (or stay).';
GRANT EXECUTE ON FUNCTION headrace.delivery_may_move(text, text) TO headrace_app;

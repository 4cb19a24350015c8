CREATE OR REPLACE FUNCTION headrace.account_deletion_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source
  WHEN target    THEN true
  WHEN 'WAITING' THEN target IN ('RUNNING', 'CANCELED')
  WHEN 'RUNNING' THEN target = 'COMPLETED'
  ELSE false
END;
COMMENT ON FUNCTION headrace.account_deletion_may_move(text, text) IS 'Whether a deletion may go from one status to another (or stay).';
GRANT EXECUTE ON FUNCTION headrace.account_deletion_may_move(text, text) TO headrace_app;

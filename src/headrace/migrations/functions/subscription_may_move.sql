CREATE OR REPLACE FUNCTION headrace.subscription_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source
  WHEN target     THEN true
  WHEN 'PENDING'  THEN target IN ('ACTIVE', 'CANCELED', 'EXPIRED', 'REFUNDED')
  WHEN 'ACTIVE'   THEN target IN ('PAST_DUE', 'CANCELED', 'EXPIRED', 'REFUNDED')
  WHEN 'PAST_DUE' THEN target IN ('ACTIVE', 'CANCELED', 'EXPIRED', 'REFUNDED')
  WHEN 'CANCELED' THEN target IN ('ACTIVE', 'REFUNDED')  -- ACTIVE: the money came after all
  WHEN 'EXPIRED'  THEN target IN ('ACTIVE', 'REFUNDED')
  ELSE false
END;
COMMENT ON FUNCTION headrace.subscription_may_move(text, text) IS 'Whether a subscription may go from one status to another (or stay).';
GRANT EXECUTE ON FUNCTION headrace.subscription_may_move(text, text) TO headrace_app;

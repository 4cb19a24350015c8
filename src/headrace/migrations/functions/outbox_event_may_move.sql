CREATE OR REPLACE FUNCTION headrace.outbox_event_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source
  WHEN target    THEN true
  WHEN 'PENDING' THEN target IN ('PUBLISHED', 'FAILED', 'DEAD')
  WHEN 'FAILED'  THEN target IN ('PUBLISHED', 'DEAD')
  WHEN 'DEAD'    THEN target = 'PENDING'  -- a person wants it tried again
  ELSE false
END;
COMMENT ON FUNCTION headrace.outbox_event_may_move(text, text) IS 'Whether an event may go from one state to another (or stay).';
GRANT EXECUTE ON FUNCTION headrace.outbox_event_may_move(text, text) TO headrace_app;

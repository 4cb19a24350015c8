-- The moves that are drawn. An expression and not a table of pairs, because the trigger's WHEN inlines it: a move that
-- is allowed costs two comparisons and no function call.
CREATE OR REPLACE FUNCTION headrace.task_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source
  WHEN target          THEN true
  -- Straight to an end, too: a task that is over within a beat has its row written once, with the end.
  WHEN 'QUEUED'        THEN target <> 'UPLOADED'
  WHEN 'RUNNING'       THEN target <> 'UPLOADED'
  -- Steps go forward, some may be left out; back to QUEUED is a retry or a worker that gives the task back.
  WHEN 'PREPROCESSING' THEN target NOT IN ('UPLOADED', 'RUNNING')
  WHEN 'DETECTING'     THEN target NOT IN ('UPLOADED', 'RUNNING', 'PREPROCESSING')
  WHEN 'INPAINTING'    THEN target NOT IN ('UPLOADED', 'RUNNING', 'PREPROCESSING', 'DETECTING')
  WHEN 'PACKAGING'     THEN target NOT IN ('UPLOADED', 'RUNNING', 'PREPROCESSING', 'DETECTING', 'INPAINTING')
  WHEN 'UPLOADED'      THEN target IN ('QUEUED', 'CANCELED', 'FAILED')
  -- Only by hand: a person who tries again.
  WHEN 'FAILED'        THEN target = 'QUEUED'
  WHEN 'CANCELED'      THEN target = 'QUEUED'
  ELSE false  -- SUCCEEDED is the end
END;
COMMENT ON FUNCTION headrace.task_may_move(text, text) IS 'Whether a task may go from one status to another (or stay).';
GRANT EXECUTE ON FUNCTION headrace.task_may_move(text, text) TO headrace_app;

CREATE OR REPLACE FUNCTION headrace.survey_lanes(
  queues text[], types text[], worker_labels jsonb, after_precedence integer, after_lane integer, most integer
)
RETURNS TABLE (precedence integer, lane_id integer, run_at timestamptz, seq bigint, only_once boolean, wait_seconds double precision)
LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan
AS $$
  WITH RECURSIVE first_of AS (
    (SELECT q.precedence, q.lane_id, q.run_at, q.seq
     FROM headrace.task_queue AS q
     WHERE q.worker IS NULL AND (q.precedence, q.lane_id) > (after_precedence, after_lane)
     ORDER BY q.precedence, q.lane_id, q.run_at, q.seq
     LIMIT 1)
    UNION ALL
    SELECT following.*
    FROM first_of, LATERAL (
      SELECT q.precedence, q.lane_id, q.run_at, q.seq
      FROM headrace.task_queue AS q
      WHERE q.worker IS NULL AND (q.precedence, q.lane_id) > (first_of.precedence, first_of.lane_id)
      ORDER BY q.precedence, q.lane_id, q.run_at, q.seq
      LIMIT 1
    ) AS following
  )
  SELECT first_of.*, lane.only_once, extract(epoch FROM first_of.run_at - now())::double precision
  FROM first_of
  JOIN headrace.task_lanes AS lane ON lane.id = first_of.lane_id
  WHERE lane.task_type = ANY (types)
    AND (queues IS NULL OR lane.queue = ANY (queues))
    AND lane.labels <@ worker_labels
    AND NOT EXISTS (SELECT FROM headrace.queues WHERE name = lane.queue AND paused_at IS NOT NULL)
  LIMIT most
$$;
DROP FUNCTION headrace.take_first(integer, text[], text[], jsonb, integer, integer);

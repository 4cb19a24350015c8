-- Which lanes have work, in the order of precedence: for each its first row. It jumps from lane to lane through the
-- index, so the length of a backlog does not matter; lanes for which this worker is not fit are passed over.
--
-- There is one way through it whatever the figures are: along the index, lane by lane. So its plan can be kept, also from a
-- time when the queue was empty; making one costs as much as the rest of it.
CREATE OR REPLACE FUNCTION headrace.survey_lanes(
  queues text[], types text[], worker_labels jsonb, after_precedence integer, after_lane integer, most integer
)
RETURNS TABLE (precedence integer, lane_id integer, run_at timestamptz, seq bigint, only_once boolean, wait_seconds double precision)
LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan SET jit = off
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
  -- Looked up one by one, so that the lanes stay in order and the jumping ends with the limit.
  CROSS JOIN LATERAL (
    SELECT known.only_once
    FROM headrace.task_lanes AS known
    WHERE known.id = first_of.lane_id
      AND known.task_type = ANY (types)
      AND (queues IS NULL OR known.queue = ANY (queues))
      AND known.labels <@ worker_labels
      AND NOT EXISTS (SELECT FROM headrace.queues WHERE name = known.queue AND paused_at IS NOT NULL)
    OFFSET 0
  ) AS lane
  LIMIT most
$$;
COMMENT ON FUNCTION headrace.survey_lanes(text[], text[], jsonb, integer, integer, integer) IS 'Lanes with waiting tasks that a worker of these queues, types and labels can take from; wait_seconds > 0 for one that is not due yet.';

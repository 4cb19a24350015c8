-- One round trip for a worker that was just woken: survey and claim at once. What else there is, the next survey finds.
CREATE FUNCTION headrace.take_first(
  worker_number integer, queues text[], types text[], worker_labels jsonb, most integer, startable integer
)
RETURNS TABLE (
  seq bigint, run_at timestamptz, lane_id integer, precedence integer, attempt integer, task_id varchar, claimed_at timestamptz,
  user_id varchar, task_type varchar, payload jsonb, retries integer, max_attempts integer, timeout_seconds integer,
  trace_id varchar, current_step varchar, schedule_uid varchar, grace_seconds integer, extension_seconds integer
)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  due record;
BEGIN
  SELECT array_agg(first_of.lane_id) AS lanes, array_agg(first_of.precedence) AS precedences,
         array_agg(first_of.run_at) AS run_ats, array_agg(first_of.seq) AS seqs, array_agg(first_of.only_once) AS once
  INTO due
  FROM (
    SELECT surveyed.*, min(surveyed.precedence) OVER () AS highest
    FROM headrace.survey_lanes(queues, types, worker_labels, -2147483648, -1, 256) AS surveyed
    WHERE surveyed.wait_seconds <= 0
  ) AS first_of
  WHERE first_of.precedence = first_of.highest;
  IF due.lanes IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
  SELECT *
  FROM headrace.take_tasks(
    worker_number, due.lanes, due.precedences, due.run_ats, due.seqs,
    -- Each lane its share; of what may be tried only once, no more than can start now.
    ARRAY(
      SELECT least(ceil(most::numeric / cardinality(due.lanes))::integer, CASE WHEN once THEN startable END)
      FROM unnest(due.once) WITH ORDINALITY AS given (once, position) ORDER BY position
    ),
    most
  );
END
$$;
COMMENT ON FUNCTION headrace.take_first(integer, text[], text[], jsonb, integer, integer) IS 'Claims what is due in the highest priority that has something, in one round trip.';

-- There is one way through it whatever the figures are: along the index, lane by lane. So its plan can be kept, also from a
-- time when the queue was empty; making one costs as much as the rest of it.
CREATE OR REPLACE FUNCTION headrace.survey_lanes(
  queues text[], types text[], worker_labels jsonb, after_precedence integer, after_lane integer, most integer
)
RETURNS TABLE (precedence integer, lane_id integer, run_at timestamptz, seq bigint, only_once boolean, wait_seconds double precision)
LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan
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

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

-- Every join in them goes along an index whatever the figures are, so a plan can be kept; making one costs as much as
-- taking twenty tasks.
ALTER FUNCTION headrace.survey_lanes(text[], text[], jsonb, integer, integer, integer) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION headrace.take_tasks(integer, integer[], integer[], timestamptz[], bigint[], integer[], integer) SET plan_cache_mode = force_generic_plan;

CREATE OR REPLACE FUNCTION headrace.take_first(
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

-- Lanes in no fixed order: where a limit has one slot free at a time, the first of them would get it every time.
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
  SELECT array_agg(first_of.lane_id ORDER BY turn) AS lanes, array_agg(first_of.precedence ORDER BY turn) AS precedences,
         array_agg(first_of.run_at ORDER BY turn) AS run_ats, array_agg(first_of.seq ORDER BY turn) AS seqs,
         array_agg(first_of.only_once ORDER BY turn) AS once
  INTO due
  FROM (
    SELECT surveyed.*, min(surveyed.precedence) OVER () AS highest, random() AS turn
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
    -- Each lane its share; of what may be tried only once, no more than can start now, over all lanes together.
    ARRAY(
      SELECT CASE WHEN once
               THEN greatest(0, least(share, startable - share * (count(*) FILTER (WHERE once) OVER so_far - 1)))
               ELSE share
             END::integer
      FROM unnest(due.once) WITH ORDINALITY AS given (once, position),
           LATERAL ceil(most::numeric / cardinality(due.lanes)) AS share
      WINDOW so_far AS (ORDER BY position)
      ORDER BY position
    ),
    most
  );
END
$$;

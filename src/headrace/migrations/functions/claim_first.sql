-- One round trip for a worker that was just woken: survey and claim at once. What else there is, the next survey finds.
-- Lanes come in no fixed order: where a limit has one slot free at a time, the first of them would get it every time.
CREATE OR REPLACE FUNCTION headrace.claim_first(
  worker_number integer, queues text[], types text[], worker_labels jsonb, most integer, startable integer
)
RETURNS TABLE (
  seq bigint, run_at timestamptz, lane_id integer, precedence integer, attempt integer, task_id varchar, claimed_at timestamptz,
  user_id varchar, task_type varchar, payload jsonb, retries integer, max_attempts integer, timeout_seconds integer,
  trace_id varchar, current_step varchar, schedule_uid varchar, grace_seconds integer, extension_seconds integer
)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  due    record;
  share  integer;
  shares integer[];
BEGIN
  SELECT array_agg(first_of.lane_id) AS lanes, array_agg(first_of.precedence) AS precedences,
         array_agg(first_of.run_at) AS run_ats, array_agg(first_of.seq) AS seqs,
         array_agg(first_of.only_once) AS once
  INTO due
  FROM (
    SELECT surveyed.*, rank() OVER (ORDER BY surveyed.precedence) AS place
    FROM headrace.survey_lanes(queues, types, worker_labels, -2147483648, -1, 256) AS surveyed
    WHERE surveyed.wait_seconds <= 0
    ORDER BY random()
  ) AS first_of
  WHERE first_of.place = 1;
  IF due.lanes IS NULL THEN
    RETURN;
  END IF;
  share := ceil(most::numeric / cardinality(due.lanes));
  shares := array_fill(share, ARRAY[cardinality(due.lanes)]);
  IF true = ANY (due.once) THEN
    shares := ARRAY(
      SELECT CASE WHEN once
               THEN greatest(0, least(share, startable - share * (count(*) FILTER (WHERE once) OVER so_far - 1)))
               ELSE share
             END::integer
      FROM unnest(due.once) WITH ORDINALITY AS given (once, position)
      WINDOW so_far AS (ORDER BY position)
      ORDER BY position
    );
  END IF;
  RETURN QUERY
  SELECT * FROM headrace.claim_tasks(worker_number, due.lanes, due.precedences, due.run_ats, due.seqs, shares, most);
END
$$;
COMMENT ON FUNCTION headrace.claim_first(integer, text[], text[], jsonb, integer, integer) IS 'Claims what is due in the highest priority that has something, in one round trip.';

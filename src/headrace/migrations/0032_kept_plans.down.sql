-- As they were in 0016 and 0026.
CREATE OR REPLACE FUNCTION headrace.take_tasks(
  worker_number integer, lanes integer[], precedences integer[], floor_run_at timestamptz[], floor_seq bigint[],
  shares integer[], most integer
)
RETURNS TABLE (
  seq bigint, run_at timestamptz, lane_id integer, precedence integer, attempt integer, task_id varchar, claimed_at timestamptz,
  user_id varchar, task_type varchar, payload jsonb, retries integer, max_attempts integer, timeout_seconds integer,
  trace_id varchar, current_step varchar, schedule_uid varchar, grace_seconds integer, extension_seconds integer
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
  given  record;
  wanted integer := most;
  free   integer;
  taken  integer;
BEGIN
  -- Held against the reaper: a worker that was given up can take nothing more.
  PERFORM FROM headrace.workers WHERE number = worker_number AND ended_at IS NULL FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'worker % was given up', worker_number USING ERRCODE = 'HR001';
  END IF;

  FOR given IN
    SELECT g.lane, g.precedence, g.floor_run_at, g.floor_seq, g.share,
           lane.queue, lane.task_type, lane.limit_key,
           queue.max_running AS queue_limit, type.max_running AS type_limit,
           CASE WHEN lane.limit_key <> '' THEN type.max_running_per_key END AS key_limit
    FROM unnest(lanes, precedences, floor_run_at, floor_seq, shares) WITH ORDINALITY
         AS g (lane, precedence, floor_run_at, floor_seq, share, position)
    JOIN headrace.task_lanes AS lane ON lane.id = g.lane
    LEFT JOIN headrace.queues AS queue ON queue.name = lane.queue
    LEFT JOIN headrace.task_types AS type ON type.name = lane.task_type
    WHERE queue.paused_at IS NULL
    ORDER BY g.position
  LOOP
    free := least(given.share, wanted);
    IF num_nonnulls(given.queue_limit, given.type_limit, given.key_limit) > 0 THEN
      free := least(
        free,
        headrace.free_slots('queue', given.queue, given.queue_limit),
        headrace.free_slots('type', given.task_type, given.type_limit),
        headrace.free_slots('key', given.task_type || ' ' || given.limit_key, given.key_limit)
      );
      CONTINUE WHEN free <= 0;
    END IF;
    RETURN QUERY
    WITH chosen AS (
      SELECT q.seq
      FROM headrace.task_queue AS q
      WHERE q.worker IS NULL AND q.precedence = given.precedence AND q.lane_id = given.lane
        AND (q.run_at, q.seq) >= (given.floor_run_at, given.floor_seq) AND q.run_at <= now()
      ORDER BY q.run_at, q.seq
      LIMIT free
      FOR UPDATE SKIP LOCKED
    ), taken AS (
      UPDATE headrace.task_queue AS q
      SET worker = worker_number, attempt = q.attempt + 1, claimed_at = now(),
          limited = num_nonnulls(given.queue_limit, given.type_limit, given.key_limit) > 0
      FROM chosen
      WHERE q.seq = chosen.seq
      RETURNING q.seq, q.run_at, q.lane_id, q.precedence, q.attempt, q.task_id, q.claimed_at
    )
    SELECT taken.*, task.user_id, task.task_type, task.payload, task.retries, task.max_attempts, task.timeout_seconds,
           task.trace_id, task.current_step, task.schedule_uid, task.grace_seconds, task.extension_seconds
    FROM taken
    JOIN headrace.tasks AS task ON task.id = taken.task_id;
    GET DIAGNOSTICS taken = ROW_COUNT;
    wanted := wanted - taken;
    EXIT WHEN wanted <= 0;
  END LOOP;
END
$$;

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

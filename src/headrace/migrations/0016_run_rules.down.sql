DROP FUNCTION headrace.take_tasks(integer, integer[], integer[], timestamptz[], bigint[], integer[], integer);
-- Take tasks for a worker: from each lane its share, in order, skipping what others are taking at this moment. The floor
-- of a lane is where the caller knows its first row to be: dead rows before it, which vacuum may not be allowed to
-- remove, are not walked over again.
CREATE FUNCTION headrace.take_tasks(
  worker_number integer, lanes integer[], precedences integer[], floor_run_at timestamptz[], floor_seq bigint[],
  shares integer[], most integer
)
RETURNS TABLE (
  seq bigint, run_at timestamptz, lane_id integer, precedence integer, attempt integer, task_id varchar, claimed_at timestamptz,
  user_id varchar, task_type varchar, payload jsonb, retries integer, max_attempts integer, timeout_seconds integer,
  trace_id varchar, current_step varchar
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
           task.trace_id, task.current_step
    FROM taken
    JOIN headrace.tasks AS task ON task.id = taken.task_id;
    GET DIAGNOSTICS taken = ROW_COUNT;
    wanted := wanted - taken;
    EXIT WHEN wanted <= 0;
  END LOOP;
END
$$;
COMMENT ON FUNCTION headrace.take_tasks(integer, integer[], integer[], timestamptz[], bigint[], integer[], integer) IS 'Claims waiting tasks of these lanes for a worker.';

ALTER TABLE headrace.tasks DROP COLUMN extension_seconds, DROP COLUMN grace_seconds;

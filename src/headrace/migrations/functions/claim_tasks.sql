-- Claim tasks for a worker: from each lane its share, by run_at and then in the order of submission, skipping what others
-- are claiming at this moment. The order of lanes is the caller's: by precedence (survey_lanes), then users in turns
-- (tasks/worker/claiming.py). The floor
-- of a lane is where the caller knows its first row to be: dead rows before it, which vacuum may not be allowed to
-- remove, are not walked over again.
--
-- Plans of a claim are kept: planning took longer than the claim of one task. That is safe only because there is
-- one way through each statement, whatever the figures say, also when a plan comes from a time when the queue was empty:
-- rows are looked up one by one by their keys (OFFSET 0 keeps a subquery from being merged into the join), and what was
-- chosen is updated by a list of keys.
--
-- Up to PostgreSQL 17, a step that is switched off and needed all the same counts as ten thousand million to the planner,
-- and what costs so much is compiled before it runs: a claim took 200 ms instead of one. So whatever steers its plans has
-- jit = off.
CREATE OR REPLACE FUNCTION headrace.claim_tasks(
  worker_number integer, lanes integer[], precedences integer[], floor_run_at timestamptz[], floor_seq bigint[],
  shares integer[], most integer
)
RETURNS TABLE (
  seq bigint, run_at timestamptz, lane_id integer, precedence integer, attempt integer, task_id varchar, claimed_at timestamptz,
  user_id varchar, task_type varchar, payload jsonb, retries integer, max_attempts integer, timeout_seconds integer,
  trace_id varchar, current_step varchar, schedule_uid varchar, grace_seconds integer, extension_seconds integer
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
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
           lane.route_id, lane.queue, lane.task_type, lane.limit_key, lane.user_id,
           queue.max_running AS queue_limit, type.max_running AS type_limit,
           CASE WHEN lane.limit_key <> '' THEN type.max_running_per_key END AS key_limit,
           CASE WHEN type.limited_by_plan THEN headrace.plan_concurrency(lane.user_id) END AS plan_limit
    FROM unnest(lanes, precedences, floor_run_at, floor_seq, shares) WITH ORDINALITY
         AS g (lane, precedence, floor_run_at, floor_seq, share, position)
    CROSS JOIN LATERAL (
      SELECT known.route_id, known.queue, known.task_type, known.limit_key, known.user_id
      FROM headrace.task_lanes AS known
      WHERE known.id = g.lane
      OFFSET 0
    ) AS lane
    LEFT JOIN LATERAL (
      SELECT known.max_running, known.paused_at FROM headrace.queues AS known WHERE known.name = lane.queue OFFSET 0
    ) AS queue ON true
    LEFT JOIN LATERAL (
      SELECT known.max_running, known.max_running_per_key, known.limited_by_plan
      FROM headrace.task_types AS known
      WHERE known.name = lane.task_type
      OFFSET 0
    ) AS type ON true
    WHERE queue.paused_at IS NULL
    ORDER BY g.position
  LOOP
    free := least(given.share, wanted);
    IF num_nonnulls(given.queue_limit, given.type_limit, given.key_limit, given.plan_limit) > 0 THEN
      free := least(
        free,
        headrace.free_slots('queue', given.queue, given.queue_limit),
        headrace.free_slots('type', given.task_type, given.type_limit),
        headrace.free_slots('key', given.task_type || ' ' || given.limit_key, given.key_limit),
        headrace.free_slots('plan', given.user_id, given.plan_limit)
      );
      CONTINUE WHEN free <= 0;
    END IF;
    RETURN QUERY
    WITH chosen AS (
      SELECT q.seq
      FROM headrace.task_queue AS q
      WHERE q.worker IS NULL AND NOT q.delayed AND q.route_id = given.route_id AND q.precedence = given.precedence
        AND q.lane_id = given.lane
        AND (q.run_at, q.seq) >= (given.floor_run_at, given.floor_seq) AND q.run_at <= now()
      ORDER BY q.run_at, q.seq
      LIMIT free
      FOR UPDATE SKIP LOCKED
    ), taken AS (
      UPDATE headrace.task_queue AS q
      -- Read after the statement's snapshot: now() may lie before a wait for a lock, and then before the end of the run
      -- whose slot this task has.
      SET worker = worker_number, attempt = q.attempt + 1, claimed_at = (SELECT clock_timestamp()),
          limited = num_nonnulls(given.queue_limit, given.type_limit, given.key_limit, given.plan_limit) > 0
      WHERE q.seq = ANY (ARRAY(SELECT chosen.seq FROM chosen))
      RETURNING q.seq, q.run_at, q.lane_id, q.precedence, q.attempt, q.task_id, q.claimed_at
    )
    SELECT taken.*, task.*
    FROM taken
    CROSS JOIN LATERAL (
      SELECT known.user_id, known.task_type, known.payload, known.retries, known.max_attempts, known.timeout_seconds,
             known.trace_id, known.current_step, known.schedule_uid, known.grace_seconds, known.extension_seconds
      FROM headrace.tasks AS known
      WHERE known.id = taken.task_id
      OFFSET 0
    ) AS task
    ORDER BY taken.run_at, taken.seq;
    GET DIAGNOSTICS taken = ROW_COUNT;
    wanted := wanted - taken;
    EXIT WHEN wanted <= 0;
  END LOOP;
END
$$;
COMMENT ON FUNCTION headrace.claim_tasks(integer, integer[], integer[], timestamptz[], bigint[], integer[], integer) IS 'Claims waiting tasks of these lanes for a worker.';

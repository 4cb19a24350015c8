-- Which lanes have work, in the order of precedence, route and lane: for each its first row. It reads the routes that this
-- worker may take and jumps from lane to lane through the index of each. So neither the length of a backlog matters, nor
-- how many lanes there are that this worker cannot take, nor how many tasks wait for their time.
--
-- There is one way through each statement whatever the figures are: along the index. So plans can be kept, also from a
-- time when the queue was empty; making one costs as much as the rest of it.
CREATE OR REPLACE FUNCTION headrace.survey_lanes(
  queues text[], types text[], worker_labels jsonb, after_precedence integer, after_lane integer, most integer
)
RETURNS TABLE (precedence integer, lane_id integer, run_at timestamptz, seq bigint, only_once boolean, wait_seconds double precision)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  label_sets  jsonb[] := ARRAY['{}'::jsonb];
  label       record;
  after_route integer := coalesce((SELECT lane.route_id FROM headrace.task_lanes AS lane WHERE lane.id = after_lane), 0);
  routes      integer[];
  heads       integer[];  -- the next precedence of each route
  current     integer;
  number      integer;
  wanted      integer := most;
BEGIN
  PERFORM headrace.release_delayed(5000);

  -- Each set of labels that this worker's labels satisfy: looked up by key, so that other sets cost nothing. A task has
  -- eight labels at most; a worker with more has too many sets, and filters.
  IF worker_labels <> '{}' THEN
    IF (SELECT count(*) FROM jsonb_object_keys(worker_labels)) <= 8 THEN
      FOR label IN SELECT given.key, given.value FROM jsonb_each(worker_labels) AS given LOOP
        label_sets := label_sets || ARRAY(
          SELECT known.labels || jsonb_build_object(label.key, label.value) FROM unnest(label_sets) AS known (labels));
      END LOOP;
    ELSE
      label_sets := ARRAY(
        SELECT DISTINCT known.labels FROM headrace.task_routes AS known
        WHERE known.task_type = ANY (types) AND known.labels <@ worker_labels);
    END IF;
  END IF;
  SELECT array_agg(mine.id), array_agg(mine.head) INTO routes, heads
  FROM (
    SELECT route.id, head.precedence AS head
    FROM headrace.task_routes AS route
    CROSS JOIN LATERAL (
      SELECT q.precedence FROM headrace.task_queue AS q
      WHERE q.worker IS NULL AND NOT q.delayed AND q.route_id = route.id AND q.precedence >= after_precedence
      ORDER BY q.precedence, q.lane_id, q.run_at, q.seq
      LIMIT 1
    ) AS head
    WHERE route.task_type = ANY (types) AND route.labels = ANY (label_sets)
      AND (queues IS NULL OR route.queue = ANY (queues))
      AND NOT EXISTS (SELECT FROM headrace.queues WHERE name = route.queue AND paused_at IS NOT NULL)
  ) AS mine;

  LOOP
    SELECT min(head) INTO current FROM unnest(heads) AS head;
    EXIT WHEN current IS NULL;
    RETURN QUERY
    SELECT current, found.lane_id, found.run_at, found.seq, lane.only_once,
           extract(epoch FROM found.run_at - now())::double precision
    FROM (
      SELECT given.route FROM unnest(routes, heads) AS given (route, head)
      WHERE given.head = current AND (current > after_precedence OR given.route >= after_route)
      ORDER BY given.route
    ) AS here
    CROSS JOIN LATERAL (
      WITH RECURSIVE first_of AS (
        (SELECT q.lane_id, q.run_at, q.seq
         FROM headrace.task_queue AS q
         WHERE q.worker IS NULL AND NOT q.delayed AND q.route_id = here.route AND q.precedence = current
           AND q.lane_id > CASE WHEN current = after_precedence AND here.route = after_route THEN after_lane ELSE -1 END
         ORDER BY q.lane_id, q.run_at, q.seq
         LIMIT 1)
        UNION ALL
        SELECT following.*
        FROM first_of, LATERAL (
          SELECT q.lane_id, q.run_at, q.seq
          FROM headrace.task_queue AS q
          WHERE q.worker IS NULL AND NOT q.delayed AND q.route_id = here.route AND q.precedence = current
            AND q.lane_id > first_of.lane_id
          ORDER BY q.lane_id, q.run_at, q.seq
          LIMIT 1
        ) AS following
      )
      SELECT * FROM first_of LIMIT wanted
    ) AS found
    -- Looked up one by one, so that the lanes stay in order and the jumping ends with the limit.
    CROSS JOIN LATERAL (
      SELECT known.only_once FROM headrace.task_lanes AS known WHERE known.id = found.lane_id OFFSET 0
    ) AS lane
    LIMIT wanted;
    GET DIAGNOSTICS number = ROW_COUNT;
    wanted := wanted - number;
    EXIT WHEN wanted <= 0;
    SELECT array_agg(further.route), array_agg(further.head) INTO routes, heads
    FROM (
      SELECT given.route, CASE WHEN given.head > current THEN given.head ELSE (
        SELECT q.precedence FROM headrace.task_queue AS q
        WHERE q.worker IS NULL AND NOT q.delayed AND q.route_id = given.route AND q.precedence > current
        ORDER BY q.precedence, q.lane_id, q.run_at, q.seq
        LIMIT 1
      ) END AS head
      FROM unnest(routes, heads) AS given (route, head)
    ) AS further
    WHERE further.head IS NOT NULL;
  END LOOP;
END
$$;
COMMENT ON FUNCTION headrace.survey_lanes(text[], text[], jsonb, integer, integer, integer) IS 'Lanes with waiting tasks that a worker of these queues, types and labels can take from; wait_seconds > 0 for one that is not due yet.';

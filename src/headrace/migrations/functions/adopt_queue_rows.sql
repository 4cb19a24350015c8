-- Waiting rows that a program of an earlier release wrote have no route, and no worker would find them: they get the lane
-- and the route that headrace.submit would have given them. At most this number; gives the count.
CREATE OR REPLACE FUNCTION headrace.adopt_queue_rows(most integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  waiting  record;
  assigned record;
  adopted  integer := 0;
BEGIN
  FOR waiting IN
    SELECT place.seq, task.left_to_type IS NULL AS settled, task.queue, task.task_type, task.user_id, task.limit_key,
           task.labels, task.max_attempts = 1 AS only_once
    FROM (
      SELECT q.seq, q.task_id FROM headrace.task_queue AS q
      WHERE q.worker IS NULL AND NOT q.delayed AND q.route_id = 0
      ORDER BY q.precedence, q.lane_id, q.run_at, q.seq
      LIMIT most
      FOR UPDATE SKIP LOCKED
    ) AS place
    JOIN headrace.tasks AS task ON task.id = place.task_id
  LOOP
    IF waiting.settled THEN
      assigned := headrace.assign_lane(waiting.queue, waiting.task_type, waiting.user_id, coalesce(waiting.limit_key, ''),
                                       coalesce(waiting.labels, '{}'), waiting.only_once);
    ELSE
      assigned := headrace.assign_lane(waiting.queue, waiting.task_type, waiting.user_id, '', headrace.undeclared(), false);
    END IF;
    UPDATE headrace.task_queue AS q
    SET lane_id = assigned.lane_id, route_id = assigned.route_id, delayed = waiting.settled AND q.run_at > now()
    WHERE q.seq = waiting.seq;
    adopted := adopted + 1;
  END LOOP;
  IF adopted > 0 THEN
    PERFORM pg_notify('headrace_tasks', '') FROM headrace.workers WHERE ended_at IS NULL AND asleep LIMIT 1;
  END IF;
  RETURN adopted;
END
$$;
COMMENT ON FUNCTION headrace.adopt_queue_rows(integer) IS 'Gives a route to waiting rows of programs of an earlier release; gives how many.';
GRANT EXECUTE ON FUNCTION headrace.adopt_queue_rows(integer) TO headrace_app;

-- Settles tasks of these types that were submitted before their type was declared, up to a limit; returns their number.
-- The rows of the queue are locked first, as everywhere; rows locked by others are left to a later call.
CREATE OR REPLACE FUNCTION headrace.settle_tasks(types text[], most integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  waiting record;
  known   headrace.task_types%ROWTYPE;
  task    headrace.tasks%ROWTYPE;
  settled integer := 0;
  cost    integer;
  refused text;
  assigned record;
BEGIN
  FOR waiting IN
    SELECT place.seq, place.task_id, lane.task_type
    FROM headrace.task_lanes AS lane
    CROSS JOIN LATERAL (
      SELECT q.seq, q.task_id
      FROM headrace.task_queue AS q
      WHERE q.worker IS NULL AND NOT q.delayed AND q.route_id = lane.route_id AND q.precedence = 0 AND q.lane_id = lane.id
      ORDER BY q.run_at, q.seq
      LIMIT most
      FOR UPDATE SKIP LOCKED
    ) AS place
    WHERE lane.labels = '{"undeclared type": ""}' AND lane.task_type = ANY (types)
      AND EXISTS (SELECT FROM headrace.task_types AS declared WHERE declared.name = lane.task_type)
    LIMIT most
  LOOP
    SELECT * INTO known FROM headrace.task_types WHERE name = waiting.task_type;
    SELECT * INTO task FROM headrace.tasks WHERE id = waiting.task_id;
    -- As submit would have refused it: a follower that was not called for its creation is not called for its end.
    IF cardinality(known.followers) > 0 THEN
      PERFORM headrace.fail_unsettled(
        waiting.seq, task.id, 'Its type has followers (' || array_to_string(known.followers, ', ')
                              || '): it must be submitted over the API or by a program, not in SQL.',
        known.emits_events, known.emits_always);
      settled := settled + 1;
      CONTINUE;
    END IF;
    refused := headrace.payload_fault(known.payload_check, task.payload);
    IF refused IS NOT NULL THEN
      PERFORM headrace.fail_unsettled(
        waiting.seq, task.id, 'The payload does not fit ' || task.task_type || ': ' || refused || '.', known.emits_events,
        known.emits_always);
      settled := settled + 1;
      CONTINUE;
    END IF;
    IF 'queue' = ANY (task.left_to_type) THEN
      task.queue := known.queue;
    END IF;
    IF 'priority' = ANY (task.left_to_type) THEN
      task.priority := known.priority;
    END IF;
    IF 'max_attempts' = ANY (task.left_to_type) THEN
      task.max_attempts := known.max_attempts;
    END IF;
    IF 'timeout_seconds' = ANY (task.left_to_type) THEN
      task.timeout_seconds := known.timeout_seconds;
    END IF;
    -- A type that computes the key takes no other. It is too late to refuse this task; an invalid key counts by its text.
    IF known.limit_key IS NOT NULL THEN
      BEGIN
        task.limit_key := headrace.limit_key(known.limit_key, task.payload, task.user_id);
      EXCEPTION WHEN SQLSTATE 'HR004' THEN
        task.limit_key := left(task.payload #>> (string_to_array(known.limit_key, '.'))[2:], 255);
      END;
    END IF;
    -- A task whose user's units are locked is left to a later call, too: no other task waits for it.
    IF known.units IS NOT NULL AND EXISTS (SELECT FROM headrace.lock_units_of(ARRAY[task.user_id::text])) THEN
      CONTINUE;
    END IF;
    -- Its price is held now. It is too late to refuse it, and it does not run unpaid: it fails.
    cost := NULL;
    refused := NULL;
    IF known.units IS NOT NULL THEN
      BEGIN
        cost := headrace.units(known.units, task.payload);
        PERFORM headrace.hold_units(ARRAY[task.id::text], ARRAY[task.user_id::text], ARRAY[cost]);
      EXCEPTION WHEN SQLSTATE 'HR004' OR SQLSTATE 'HR006' THEN
        refused := upper(left(SQLERRM, 1)) || substr(SQLERRM, 2) || '.';
      END;
    END IF;
    UPDATE headrace.tasks AS written
    SET queue = task.queue, priority = task.priority, max_attempts = task.max_attempts,
        timeout_seconds = task.timeout_seconds, limit_key = task.limit_key, left_to_type = NULL, updated_at = now(),
        version = written.version + 1
    WHERE written.id = task.id;
    IF refused IS NOT NULL THEN
      PERFORM headrace.fail_unsettled(waiting.seq, task.id, refused, known.emits_events, known.emits_always);
      settled := settled + 1;
      CONTINUE;
    END IF;
    assigned := headrace.assign_lane(task.queue, task.task_type, task.user_id, coalesce(task.limit_key, ''),
                                     coalesce(task.labels, '{}'), task.max_attempts = 1);
    UPDATE headrace.task_queue AS q
    SET precedence = -task.priority, units = cost, lane_id = assigned.lane_id, route_id = assigned.route_id,
        delayed = q.run_at > now()
    WHERE q.seq = waiting.seq;
    settled := settled + 1;
  END LOOP;
  IF settled > 0 THEN
    PERFORM pg_notify('headrace_tasks', '') FROM headrace.workers WHERE ended_at IS NULL AND asleep LIMIT 1;
  END IF;
  RETURN settled;
END
$$;
COMMENT ON FUNCTION headrace.settle_tasks(text[], integer) IS 'Gives waiting tasks that were submitted before their type was declared what the type says; gives how many.';
GRANT EXECUTE ON FUNCTION headrace.settle_tasks(text[], integer) TO headrace_app;

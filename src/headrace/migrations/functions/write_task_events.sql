-- Events of tasks, from their rows. A start is often written together with the end, with the values of that time. A change
-- without a request, such as a worker's, has no request id. Its callers hold the interests (wants_task_events).
--
-- An id that is not given is made here: the ten letters of the time, eleven of a random uuid, which has the variant's bits
-- where a TypeID has them, and the event's number in the batch. Another uuid for each would take a fifth of the time.
CREATE OR REPLACE FUNCTION headrace.write_task_events(
  event_ids text[], event_types text[], task_ids text[], attempts integer[], request_ids text[], always boolean
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog
SET timezone = 'UTC'
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
DECLARE
  dice  text := gen_random_uuid();
  batch text := 'evt_' || headrace.letters_of_millis(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) || 'e'
                || substr(dice, 1, 2) || substr(dice, 20, 1) || substr(dice, 25, 8);
BEGIN
  INSERT INTO headrace.outbox_events
    (event_id, event_type, event_version, aggregate_type, aggregate_id, user_id, trace_id, payload_json, headers_json, status)
  SELECT coalesce(given.event_id, batch || lpad(to_hex(given.position), 4, '0')),
    given.event_type, 1, 'task', task.id, task.user_id, task.trace_id,
    jsonb_build_object(
      'task_id', task.id,
      'type', task.task_type,
      'user_id', task.user_id,
      'title', task.title,
      'key', task.idempotency_key,
      'labels', coalesce(task.labels, '{}'),
      -- Media tasks have no status RUNNING: their first is that of their first step.
      'status', CASE given.event_type WHEN 'task.created' THEN 'QUEUED'
                  WHEN 'task.started' THEN CASE WHEN task.task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT') THEN 'PREPROCESSING'
                                                ELSE 'RUNNING' END
                  ELSE task.status END,
      'attempt', given.attempt,
      -- A start that is written after the return to the queue: the row counts the return already.
      'retries', CASE WHEN NOT (moment.is_start AND task.status = 'QUEUED') THEN task.retries END,
      'max_attempts', task.max_attempts,
      'queue', task.queue,
      'priority', task.priority,
      'schedule_id', task.schedule_uid,
      'current_step', CASE WHEN moment.is_later THEN task.current_step END,
      'progress', CASE WHEN moment.is_later THEN task.progress ELSE 0 END,
      'error_code', CASE WHEN moment.is_later THEN task.error_code END,
      -- Of a stack trace the line that says what went wrong: the rest is for those who may read the task.
      'error_message', CASE WHEN moment.is_later AND task.error_message IS NOT NULL THEN (
        SELECT left(ltrim(line, ' |+'), 500)
        FROM unnest(string_to_array(task.error_message, E'\n')) WITH ORDINALITY AS lines (line, position)
        WHERE line ~ '[[:alnum:]]'
        ORDER BY position DESC
        LIMIT 1
      ) END,
      'run_at', task.run_at,
      'created_at', task.created_at,
      'started_at', task.started_at,
      'finished_at', CASE WHEN moment.is_later THEN task.finished_at END
    ),
    CASE WHEN num_nonnulls(task.trace_id, given.request_id) > 0
         THEN jsonb_strip_nulls(jsonb_build_object('trace_id', task.trace_id, 'request_id', given.request_id)) END,
    'PENDING'
  FROM unnest(event_ids, event_types, task_ids, attempts, request_ids) WITH ORDINALITY
       AS given (event_id, event_type, task_id, attempt, request_id, position)
  CROSS JOIN LATERAL (
    SELECT given.event_type = 'task.started' AS is_start, given.event_type NOT IN ('task.created', 'task.started') AS is_later
  ) AS moment
  -- A task that is not there has no aggregate_id, and that is refused.
  LEFT JOIN headrace.tasks AS task ON task.id = given.task_id
  WHERE always OR task.id IS NULL OR EXISTS (
    SELECT FROM headrace.event_interests AS interest
    WHERE interest.pattern IN ('*', 'task.*', given.event_type)
      AND (interest.user_id IS NULL OR interest.user_id = task.user_id)
      AND (interest.task_type IS NULL OR interest.task_type = task.task_type)
  )
  ORDER BY given.position;
  -- Only while a relay sleeps: NOTIFY takes a server-wide lock at commit.
  IF FOUND THEN
    PERFORM headrace.wake_relays();
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.write_task_events(text[], text[], text[], integer[], text[], boolean) IS 'Writes the events of tasks that have subscribers, or all of them.';
REVOKE EXECUTE ON FUNCTION headrace.write_task_events(text[], text[], text[], integer[], text[], boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.write_task_events(text[], text[], text[], integer[], text[], boolean) TO headrace_app;

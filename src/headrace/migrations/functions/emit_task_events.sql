-- Tells of what has just happened to tasks, from their rows: called after the change, in its transaction, so that the row
-- lock of a task puts its events in order. A start is often told together with the end; it says what was true then.
-- A change that no request made, such as a worker's, has no request id.
CREATE OR REPLACE FUNCTION headrace.emit_task_events(
  event_ids text[], event_types text[], task_ids text[], attempts integer[], request_ids text[] DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog
SET timezone = 'UTC'
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
DECLARE
  told integer;
BEGIN
  INSERT INTO headrace.outbox_events
    (event_id, event_type, event_version, aggregate_type, aggregate_id, user_id, trace_id, payload_json, headers_json, status)
  SELECT given.event_id, given.event_type, 1, 'task', task.id, task.user_id, task.trace_id,
    jsonb_build_object(
      'task_id', task.id,
      'type', task.task_type,
      'user_id', task.user_id,
      'status', CASE given.event_type WHEN 'task.created' THEN 'QUEUED' WHEN 'task.started' THEN 'RUNNING'
                                      ELSE task.status END,
      'attempt', given.attempt,
      -- A start that is told after the return to the queue: the row counts the return already.
      'retries', CASE WHEN NOT (moment.is_start AND task.status = 'QUEUED') THEN task.retries END,
      'max_attempts', task.max_attempts,
      'queue', task.queue,
      'priority', task.priority,
      'schedule_uid', task.schedule_uid,
      'current_step', CASE WHEN moment.is_later THEN task.current_step END,
      'progress', CASE WHEN moment.is_later THEN task.progress ELSE 0 END,
      'error_code', CASE WHEN moment.is_later THEN task.error_code END,
      -- Of a stack trace the line that says what went wrong: the rest is for those who may read the task.
      'error_message', CASE WHEN moment.is_later THEN (
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
  JOIN headrace.tasks AS task ON task.id = given.task_id
  ORDER BY given.position;
  GET DIAGNOSTICS told = ROW_COUNT;
  IF told <> cardinality(task_ids) THEN
    RAISE EXCEPTION 'events for % tasks, but % are there', cardinality(task_ids), told;
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.emit_task_events(text[], text[], text[], integer[], text[]) IS 'Writes one outbox event for each change of a task, in the order given.';
REVOKE EXECUTE ON FUNCTION headrace.emit_task_events(text[], text[], text[], integer[], text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.emit_task_events(text[], text[], text[], integer[], text[]) TO headrace_app;

-- Submitting in SQL, for programs in any language, and the events that tell of tasks. docs/reference/events.md describes
-- what an event holds; a change that a receiver could stumble over is a new event_version.

-- Tells of what has just happened to tasks, from their rows: called after the change, in its transaction, so that the row
-- lock of a task puts its events in order. A start is often told together with the end; it says what was true then.
CREATE FUNCTION headrace.emit_task_events(event_ids text[], event_types text[], task_ids text[], attempts integer[])
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog
SET timezone = 'UTC'
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  told integer;
BEGIN
  INSERT INTO headrace.outbox_events
    (event_id, event_type, event_version, aggregate_type, aggregate_id, trace_id, payload_json, status)
  SELECT given.event_id, given.event_type, 1, 'task', task.id, task.trace_id,
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
    'PENDING'
  FROM unnest(event_ids, event_types, task_ids, attempts) WITH ORDINALITY
       AS given (event_id, event_type, task_id, attempt, position)
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
COMMENT ON FUNCTION headrace.emit_task_events(text[], text[], text[], integer[]) IS 'Writes one outbox event for each change of a task, in the order given.';


-- What must be the same for the same idempotency key: what was asked, not what the type made of it, so that a release
-- with other defaults does not turn a repetition into another request. The trace may differ.
CREATE FUNCTION headrace.submission_digest(
  type text, payload jsonb, title text, queue text, priority integer, run_at timestamptz, max_attempts integer,
  timeout_seconds integer, limit_key text, labels jsonb, schedule_uid text
)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN encode(sha256(convert_to(jsonb_build_array(
  type, payload, title, queue, priority, extract(epoch FROM run_at), max_attempts, timeout_seconds, limit_key, labels,
  schedule_uid
)::text, 'UTF8')), 'hex');
COMMENT ON FUNCTION headrace.submission_digest(text, jsonb, text, text, integer, timestamptz, integer, integer, text, jsonb, text) IS 'The request_hash of a submission in idempotency_keys.';


-- The rules of a submission that no column states. HR003: too large, HR004: the payload is wrong, HR005: the rest is.
CREATE FUNCTION headrace.check_submission(
  type text, payload jsonb, title text, queue text, priority integer, run_at timestamptz, max_attempts integer,
  timeout_seconds integer, limit_key text, labels jsonb, idempotency_key text
)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog
AS $$
DECLARE
  body  text := payload::text;
  most  integer := coalesce(nullif(current_setting('headrace.payload_limit', true), '')::integer, 262144);
  fault text;
BEGIN
  IF octet_length(body) > most THEN
    RAISE EXCEPTION 'the payload has % bytes and may have %', octet_length(body), most
      USING ERRCODE = 'HR003', HINT = 'Store the data elsewhere and send its address; or set headrace.payload_limit.';
  END IF;
  -- Cheap first: nothing nests deeper than it has brackets.
  IF length(body) - length(translate(body, '[{', '')) > 100
     AND jsonb_path_exists(payload, 'strict $.**{100} ? (@.type() == "object" || @.type() == "array")') THEN
    RAISE EXCEPTION 'the payload is nested deeper than 100 levels'
      USING ERRCODE = 'HR004', HINT = 'Flatten it: readers in other languages fall over such depths.';
  END IF;
  fault := CASE
    WHEN type IS NULL OR type !~ '^[A-Za-z][A-Za-z0-9_.:-]{0,254}$'
      THEN 'a type has 1 to 255 letters, digits and characters of _ . : - and begins with a letter'
    WHEN type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT') THEN type || ' tasks are ordered through removal, which knows their file'
    WHEN priority NOT BETWEEN -1000000 AND 1000000 THEN 'priority must lie between -1,000,000 and 1,000,000'
    WHEN max_attempts NOT BETWEEN 1 AND 1000 THEN 'max_attempts must lie between 1 and 1000'
    WHEN timeout_seconds < 1 THEN 'timeout_seconds must be at least 1'
    -- Neither an infinity nor a year that programs cannot hold may get into the queue that every worker reads.
    WHEN NOT (run_at >= '1970-01-01' AND run_at < '9999-01-01') THEN 'run_at must lie between the years 1970 and 9998'
    WHEN length(title) NOT BETWEEN 1 AND 255 THEN 'title has 1 to 255 characters'
    WHEN length(queue) NOT BETWEEN 1 AND 64 THEN 'queue has 1 to 64 characters'
    WHEN length(limit_key) NOT BETWEEN 1 AND 255 THEN 'limit_key has 1 to 255 characters'
    WHEN length(idempotency_key) NOT BETWEEN 1 AND 128 THEN 'an idempotency key has 1 to 128 characters'
    WHEN jsonb_typeof(labels) <> 'object' OR jsonb_path_exists(labels, 'strict $.* ? (@.type() != "string")')
      THEN 'labels must be an object of strings'
    -- They are part of an index entry, so they are few and short.
    WHEN labels <> '{}' AND (
      SELECT count(*) > 8 OR bool_or(key !~ '^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$'
                                     OR value !~ '^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$')
      FROM jsonb_each_text(labels)
    ) THEN 'labels are at most 8, with names and values of 1 to 63 letters, digits and characters of . _ / -'
  END;
  IF fault IS NOT NULL THEN
    RAISE EXCEPTION '%', fault
      USING ERRCODE = 'HR005', HINT = 'The task cannot be submitted like this; nothing was written.';
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.check_submission(text, jsonb, text, text, integer, timestamptz, integer, integer, text, jsonb, text) IS 'Refuses what headrace.submit cannot take.';


-- The first submission with a key decides: gives its task's id, which is the given one if this is the first. Whoever
-- comes while the first is not committed waits for it, and goes first if it is rolled back.
CREATE FUNCTION headrace.claim_submission_key(user_id text, idempotency_key text, digest text, task_id text)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
  lifetime interval := coalesce(nullif(current_setting('headrace.idempotency_lifetime', true), '')::interval, '24 hours');
  first    record;
BEGIN
  LOOP
    INSERT INTO headrace.idempotency_keys AS known
      (scope, user_id, idempotency_key, request_hash, result_task_id, http_status, expires_at)
    VALUES ('tasks.submit', $1, $2, $3, $4, 201, now() + lifetime)
    ON CONFLICT (scope, user_id, idempotency_key) DO UPDATE
    SET request_hash = $3, result_task_id = $4, expires_at = now() + lifetime
    WHERE known.expires_at <= now()
    RETURNING request_hash, result_task_id INTO first;
    EXIT WHEN FOUND;
    -- A statement of its own: it sees what was committed while we waited. Nothing there: the key expired just now.
    SELECT request_hash, result_task_id INTO first
    FROM headrace.idempotency_keys
    WHERE scope = 'tasks.submit' AND user_id = $1 AND idempotency_key = $2;
    EXIT WHEN FOUND;
  END LOOP;
  IF first.request_hash <> digest THEN
    RAISE EXCEPTION 'the idempotency key % was used for another task', quote_literal(idempotency_key)
      USING ERRCODE = 'HR002', HINT = 'Take a fresh key for each task; repeat one only with the very same arguments.';
  END IF;
  RETURN first.result_task_id;
END
$$;


CREATE FUNCTION headrace.submit(
  type text,
  payload jsonb DEFAULT '{}',
  user_id text DEFAULT NULL,
  title text DEFAULT NULL,
  queue text DEFAULT NULL,
  priority integer DEFAULT NULL,
  run_at timestamptz DEFAULT NULL,
  max_attempts integer DEFAULT NULL,
  timeout_seconds integer DEFAULT NULL,
  limit_key text DEFAULT NULL,
  labels jsonb DEFAULT NULL,
  trace_id text DEFAULT NULL,
  idempotency_key text DEFAULT NULL,
  schedule_uid text DEFAULT NULL
)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
  body       jsonb := coalesce(submit.payload, '{}');
  marks      jsonb := coalesce(submit.labels, '{}');
  owner      text := coalesce(submit.user_id, 'u_00000000000000000000000000');  -- the product itself
  task       text := headrace.new_id('tsk');
  first_task text;
  known      headrace.task_types%ROWTYPE;
  lane       integer;
  seq        bigint;
BEGIN
  PERFORM headrace.check_submission(
    submit.type, body, submit.title, submit.queue, submit.priority, submit.run_at, submit.max_attempts,
    submit.timeout_seconds, submit.limit_key, marks, submit.idempotency_key);

  IF submit.idempotency_key IS NOT NULL THEN
    first_task := headrace.claim_submission_key(owner, submit.idempotency_key, headrace.submission_digest(
      submit.type, body, submit.title, submit.queue, submit.priority, submit.run_at, submit.max_attempts,
      submit.timeout_seconds, submit.limit_key, marks, submit.schedule_uid), task);
    IF first_task <> task THEN
      RETURN first_task;
    END IF;
  END IF;

  -- A type that nobody has registered yet is taken: its tasks wait for a worker that knows it.
  SELECT * INTO known FROM headrace.task_types WHERE name = submit.type;
  known.queue := coalesce(submit.queue, known.queue, 'default');
  known.priority := coalesce(submit.priority, known.priority, 0);
  known.max_attempts := coalesce(submit.max_attempts, known.max_attempts, 3);
  known.timeout_seconds := coalesce(submit.timeout_seconds, known.timeout_seconds);
  lane := headrace.lane(known.queue, submit.type, owner, coalesce(submit.limit_key, ''), marks, known.max_attempts = 1);

  seq := nextval('headrace.task_queue_seq_seq');
  INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, priority, queue, run_at, max_attempts,
                              timeout_seconds, labels, limit_key, trace_id, schedule_uid, queued_at, queue_seq)
  VALUES (task, owner, submit.type, coalesce(submit.title, submit.type), body, known.priority, known.queue,
          coalesce(submit.run_at, now()), known.max_attempts, known.timeout_seconds, nullif(marks, '{}'),
          submit.limit_key, submit.trace_id, submit.schedule_uid, now(), seq);
  INSERT INTO headrace.task_queue (seq, run_at, lane_id, precedence, task_id)
  VALUES (seq, coalesce(submit.run_at, now()), lane, -known.priority, task);

  IF coalesce(known.emits_events, true) THEN
    PERFORM headrace.emit_task_events(ARRAY[headrace.new_id('evt')], ARRAY['task.created'], ARRAY[task], ARRAY[0]);
  END IF;
  -- Waking takes a lock of the whole server at commit: only when somebody sleeps.
  PERFORM pg_notify('headrace_tasks', '') FROM headrace.workers WHERE ended_at IS NULL AND asleep LIMIT 1;
  RETURN task;
END
$$;
COMMENT ON FUNCTION headrace.submit(text, jsonb, text, text, text, integer, timestamptz, integer, integer, text, jsonb, text, text, text) IS 'Submits a task in the caller''s transaction and gives its id; with an idempotency key the same one again. What is left out is as the type says.';

-- With the caller's own rights, which must be those of the application: nobody gains any by calling it.
REVOKE EXECUTE ON FUNCTION
  headrace.emit_task_events(text[], text[], text[], integer[]),
  headrace.claim_submission_key(text, text, text, text),
  headrace.submit(text, jsonb, text, text, text, integer, timestamptz, integer, integer, text, jsonb, text, text, text)
FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
  headrace.emit_task_events(text[], text[], text[], integer[]),
  headrace.submission_digest(text, jsonb, text, text, integer, timestamptz, integer, integer, text, jsonb, text),
  headrace.check_submission(text, jsonb, text, text, integer, timestamptz, integer, integer, text, jsonb, text),
  headrace.claim_submission_key(text, text, text, text),
  headrace.submit(text, jsonb, text, text, text, integer, timestamptz, integer, integer, text, jsonb, text, text, text)
TO headrace_app;

-- What a type's limit per key counts by becomes data, so that it holds for whoever submits: programs with the type's code,
-- the API, schedules and SQL. Before, only a program with the code knew it.
ALTER TABLE headrace.task_types
  ADD COLUMN limit_key varchar(255)
             CONSTRAINT ck_task_types_limit_key CHECK (limit_key ~ '^(user|payload(\.[A-Za-z_][A-Za-z0-9_-]*)+)$');
COMMENT ON COLUMN headrace.task_types.limit_key IS 'What the limit key of a task is: user, or payload.FIELD, a path into the payload; null: what is given with it.';


-- The key of a task by its type's rule; null for none. limit_keys.py does the same, and a test compares the two.
CREATE FUNCTION headrace.limit_key(rule text, payload jsonb, user_id text)
RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog
AS $$
DECLARE
  path  text[] := (string_to_array(rule, '.'))[2:];
  value jsonb;
  key   text;
BEGIN
  IF rule = 'user' THEN
    RETURN user_id;
  END IF;
  value := payload #> path;
  -- One number, one key: 1 and 1.0 must not have slots of their own.
  key := CASE jsonb_typeof(value) WHEN 'number' THEN trim_scale(value::numeric)::text ELSE value #>> '{}' END;
  IF jsonb_typeof(value) IN ('object', 'array') OR length(key) > 255 THEN
    RAISE EXCEPTION 'the payload does not fit: % is the key of a limit, and so a text, a number or a boolean of at most 255 characters',
      array_to_string(path, '.')
      USING ERRCODE = 'HR004', HINT = 'The task cannot be submitted like this; nothing was written.';
  END IF;
  RETURN nullif(key, '');
END
$$;
COMMENT ON FUNCTION headrace.limit_key(text, jsonb, text) IS 'The limit key of a task, by the limit_key of its type; null for none.';
GRANT EXECUTE ON FUNCTION headrace.limit_key(text, jsonb, text) TO headrace_app;


-- As in 0015, but for what it says of labels.
CREATE OR REPLACE FUNCTION headrace.check_submission(
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
    ) THEN 'labels are at most 8, with names and values of 1 to 63 letters, digits and characters of . _ / - '
           'from a letter or a digit on'
  END;
  IF fault IS NOT NULL THEN
    RAISE EXCEPTION '%', fault
      USING ERRCODE = 'HR005', HINT = 'The task cannot be submitted like this; nothing was written.';
  END IF;
END
$$;


-- As in 0015, but for the limit key: a type that computes it takes no other.
CREATE OR REPLACE FUNCTION headrace.submit(
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
  key        text;
  lane       integer;
  seq        bigint;
BEGIN
  PERFORM headrace.check_submission(
    submit.type, body, submit.title, submit.queue, submit.priority, submit.run_at, submit.max_attempts,
    submit.timeout_seconds, submit.limit_key, marks, submit.idempotency_key);

  -- A type that nobody has registered yet is taken: its tasks wait for a worker that knows it.
  SELECT * INTO known FROM headrace.task_types WHERE name = submit.type;
  IF known.limit_key IS NULL THEN
    key := submit.limit_key;
  ELSIF submit.limit_key IS NULL THEN
    key := headrace.limit_key(known.limit_key, body, owner);
  ELSE
    RAISE EXCEPTION 'limit_key must be left out for %: the type takes it from %', submit.type, known.limit_key
      USING ERRCODE = 'HR005', HINT = 'The task cannot be submitted like this; nothing was written.';
  END IF;

  IF submit.idempotency_key IS NOT NULL THEN
    first_task := headrace.claim_submission_key(owner, submit.idempotency_key, headrace.submission_digest(
      submit.type, body, submit.title, submit.queue, submit.priority, submit.run_at, submit.max_attempts,
      submit.timeout_seconds, submit.limit_key, marks, submit.schedule_uid), task);
    IF first_task <> task THEN
      RETURN first_task;
    END IF;
  END IF;

  known.queue := coalesce(submit.queue, known.queue, 'default');
  known.priority := coalesce(submit.priority, known.priority, 0);
  known.max_attempts := coalesce(submit.max_attempts, known.max_attempts, 3);
  known.timeout_seconds := coalesce(submit.timeout_seconds, known.timeout_seconds);
  lane := headrace.lane(known.queue, submit.type, owner, coalesce(key, ''), marks, known.max_attempts = 1);

  seq := nextval('headrace.task_queue_seq_seq');
  INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, priority, queue, run_at, max_attempts,
                              timeout_seconds, labels, limit_key, trace_id, schedule_uid, queued_at, queue_seq)
  VALUES (task, owner, submit.type, coalesce(submit.title, submit.type), body, known.priority, known.queue,
          coalesce(submit.run_at, now()), known.max_attempts, known.timeout_seconds, nullif(marks, '{}'),
          key, submit.trace_id, submit.schedule_uid, now(), seq);
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

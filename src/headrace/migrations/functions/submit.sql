-- Submits one task, in the caller's transaction and from any language: the same rows as the programs write. A type that
-- computes its limit key takes no other.
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
  to_settle  text[];
BEGIN
  PERFORM headrace.check_submission(
    submit.type, body, submit.title, submit.queue, submit.priority, submit.run_at, submit.max_attempts,
    submit.timeout_seconds, submit.limit_key, marks, submit.idempotency_key);

  -- A type that nobody has declared yet is taken. Its tasks wait where no worker takes from, until one that knows the type
  -- has settled what is left to it.
  SELECT * INTO known FROM headrace.task_types WHERE name = submit.type;
  IF NOT FOUND THEN
    to_settle := array_remove(ARRAY[
      CASE WHEN submit.queue IS NULL THEN 'queue' END,
      CASE WHEN submit.priority IS NULL THEN 'priority' END,
      CASE WHEN submit.max_attempts IS NULL THEN 'max_attempts' END,
      CASE WHEN submit.timeout_seconds IS NULL THEN 'timeout_seconds' END
    ], NULL);
  END IF;
  IF known.limit_key IS NULL THEN
    key := submit.limit_key;
  ELSIF submit.limit_key IS NULL THEN
    key := headrace.limit_key(known.limit_key, body, owner);
  ELSE
    RAISE EXCEPTION 'limit_key must be left out for %: the type takes it from %', submit.type, known.limit_key
      USING ERRCODE = 'HR005', HINT = 'The task cannot be submitted like this; nothing was written.';
  END IF;

  -- Followers are code: a type that has any is submitted by a program that has them, or not at all.
  IF cardinality(known.followers) > 0 THEN
    RAISE EXCEPTION '% cannot be submitted in SQL: % must move with it', submit.type, array_to_string(known.followers, ', ')
      USING ERRCODE = 'HR005', HINT = 'Submit it over the API or with headrace.Headrace; nothing was written.';
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
  known.max_attempts := coalesce(submit.max_attempts, known.max_attempts, 1);
  known.timeout_seconds := coalesce(submit.timeout_seconds, known.timeout_seconds);
  IF to_settle IS NULL THEN
    lane := headrace.lane(known.queue, submit.type, owner, coalesce(key, ''), marks, known.max_attempts = 1);
  ELSE
    lane := headrace.lane(known.queue, submit.type, owner, '', headrace.undeclared(), false);
  END IF;

  seq := nextval('headrace.task_queue_seq_seq');
  INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, priority, queue, run_at, max_attempts,
                              timeout_seconds, labels, limit_key, trace_id, schedule_uid, queued_at, queue_seq,
                              left_to_type)
  VALUES (task, owner, submit.type, coalesce(submit.title, submit.type), body, known.priority, known.queue,
          coalesce(submit.run_at, now()), known.max_attempts, known.timeout_seconds, nullif(marks, '{}'),
          key, submit.trace_id, submit.schedule_uid, now(), seq, to_settle);
  INSERT INTO headrace.task_queue (seq, run_at, lane_id, precedence, task_id)
  VALUES (seq, coalesce(submit.run_at, now()), lane, CASE WHEN to_settle IS NULL THEN -known.priority ELSE 0 END, task);

  IF coalesce(known.emits_events, true) THEN
    PERFORM headrace.emit_task_events(NULL, ARRAY['task.created'], ARRAY[task], ARRAY[0], NULL, coalesce(known.emits_always, false));
  END IF;
  -- Waking takes a lock of the whole server at commit: only when somebody sleeps.
  PERFORM pg_notify('headrace_tasks', '') FROM headrace.workers WHERE ended_at IS NULL AND asleep LIMIT 1;
  RETURN task;
END
$$;
COMMENT ON FUNCTION headrace.submit(text, jsonb, text, text, text, integer, timestamptz, integer, integer, text, jsonb, text, text, text) IS 'Submits a task in the caller''s transaction and gives its id; with an idempotency key the same one again. What is left out is as the type says.';
REVOKE EXECUTE ON FUNCTION headrace.submit(text, jsonb, text, text, text, integer, timestamptz, integer, integer, text, jsonb, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.submit(text, jsonb, text, text, text, integer, timestamptz, integer, integer, text, jsonb, text, text, text) TO headrace_app;

-- What still waits for its type goes on with what was guessed before.
UPDATE headrace.tasks SET max_attempts = 3 WHERE 'max_attempts' = ANY (left_to_type);
UPDATE headrace.task_queue AS q
SET precedence = -task.priority,
    lane_id = headrace.lane(task.queue, task.task_type, task.user_id, coalesce(task.limit_key, ''),
                            coalesce(task.labels, '{}'), task.max_attempts = 1)
FROM headrace.tasks AS task
WHERE task.queue_seq = q.seq AND task.left_to_type IS NOT NULL;

DROP FUNCTION headrace.settle_tasks(text[], integer);

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

DROP INDEX headrace.idx_task_lanes_undeclared;
DROP FUNCTION headrace.undeclared();
ALTER TABLE headrace.tasks DROP COLUMN left_to_type;
DROP FUNCTION headrace.started_tasks(integer, bigint[], integer[]);

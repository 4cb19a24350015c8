-- Of these claims of a worker, those whose start is on the wide row. Whoever writes an end asks: only what is locked here
-- is certain, for a program cannot know what became of a commit whose answer it did not get.
CREATE FUNCTION headrace.started_tasks(worker_number integer, seqs bigint[], attempts integer[]) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
BEGIN
  PERFORM FROM headrace.task_queue AS q
  WHERE q.seq = ANY (seqs) AND q.worker = worker_number
    AND headrace.fence(q.seq, q.attempt) = ANY (headrace.fences(seqs, attempts))
  FOR UPDATE;
  -- A statement of its own, after the lock: it sees what the last holder committed.
  RETURN QUERY
  SELECT given.seq
  FROM unnest(seqs) AS given (seq)
  CROSS JOIN LATERAL (SELECT q.task_id FROM headrace.task_queue AS q WHERE q.seq = given.seq OFFSET 0) AS place
  CROSS JOIN LATERAL (SELECT task.status FROM headrace.tasks AS task WHERE task.id = place.task_id OFFSET 0) AS shown
  WHERE shown.status <> 'QUEUED';
END
$$;
COMMENT ON FUNCTION headrace.started_tasks(integer, bigint[], integer[]) IS 'Locks these claims of a worker and gives those whose start is on the task''s row.';
GRANT EXECUTE ON FUNCTION headrace.started_tasks(integer, bigint[], integer[]) TO headrace_app;


-- A task that is submitted by SQL before any worker has declared its type: what only the type knows was guessed, and the
-- guess stayed, so that a type with a single attempt ran three times. Now such a task waits, and is settled by the type.
ALTER TABLE headrace.tasks ADD COLUMN left_to_type text[];
COMMENT ON COLUMN headrace.tasks.left_to_type IS 'While no worker has declared its type: which of queue, priority, max_attempts and timeout_seconds were not given and are left to it. Null once it is settled.';


CREATE FUNCTION headrace.undeclared() RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT '{"undeclared type": ""}'::jsonb $$;
COMMENT ON FUNCTION headrace.undeclared() IS 'The labels of a lane whose tasks wait for their type to be declared. No worker has such a label, and no task can ask for it: it has a space.';
GRANT EXECUTE ON FUNCTION headrace.undeclared() TO headrace_app;

CREATE INDEX idx_task_lanes_undeclared ON headrace.task_lanes (task_type) WHERE labels = '{"undeclared type": ""}';


-- As in 0034, but for what is left to a type that nobody has declared.
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
    PERFORM headrace.emit_task_events(ARRAY[headrace.new_id('evt')], ARRAY['task.created'], ARRAY[task], ARRAY[0]);
  END IF;
  -- Waking takes a lock of the whole server at commit: only when somebody sleeps.
  PERFORM pg_notify('headrace_tasks', '') FROM headrace.workers WHERE ended_at IS NULL AND asleep LIMIT 1;
  RETURN task;
END
$$;


-- Settle tasks of these types that were submitted before anybody had declared them, up to so many; gives how many. The
-- rows of the queue are locked first, as everywhere; those that somebody else has are left to a later look.
CREATE FUNCTION headrace.settle_tasks(types text[], most integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  waiting record;
  known   headrace.task_types%ROWTYPE;
  task    headrace.tasks%ROWTYPE;
  settled integer := 0;
BEGIN
  FOR waiting IN
    SELECT place.seq, place.task_id, lane.task_type
    FROM headrace.task_lanes AS lane
    CROSS JOIN LATERAL (
      SELECT q.seq, q.task_id
      FROM headrace.task_queue AS q
      WHERE q.worker IS NULL AND q.precedence = 0 AND q.lane_id = lane.id
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
    -- A type that computes the key takes no other. It cannot refuse this task any more; what is no key counts by its text.
    IF known.limit_key IS NOT NULL THEN
      BEGIN
        task.limit_key := headrace.limit_key(known.limit_key, task.payload, task.user_id);
      EXCEPTION WHEN SQLSTATE 'HR004' THEN
        task.limit_key := left(task.payload #>> (string_to_array(known.limit_key, '.'))[2:], 255);
      END;
    END IF;
    UPDATE headrace.tasks AS written
    SET queue = task.queue, priority = task.priority, max_attempts = task.max_attempts,
        timeout_seconds = task.timeout_seconds, limit_key = task.limit_key, left_to_type = NULL, updated_at = now(),
        version = written.version + 1
    WHERE written.id = task.id;
    UPDATE headrace.task_queue AS q
    SET precedence = -task.priority,
        lane_id = headrace.lane(task.queue, task.task_type, task.user_id, coalesce(task.limit_key, ''),
                                coalesce(task.labels, '{}'), task.max_attempts = 1)
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

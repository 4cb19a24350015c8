-- Submits one task, in the caller's transaction and from any language: the same rows as the Python library writes. A type
-- that computes its limit key refuses another one; the price of a metered type is held, or the task is refused (HR006).
--
-- A named user must be allowed to submit the type (HR008), unless the program is trusted. An undeclared type is refused
-- (HR007), unless unknown_type is 'wait'.
-- The overload with fewer arguments would make calls ambiguous; both change in one transaction.
DROP FUNCTION IF EXISTS headrace.submit(text, jsonb, text, text, text, integer, timestamptz, integer, integer, text, jsonb, text, text, text);
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
  schedule_uid text DEFAULT NULL,
  unknown_type text DEFAULT 'refuse',
  trusted boolean DEFAULT false,
  payload_checked boolean DEFAULT false
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
  cost       integer;
  lane       record;
  seq        bigint;
  to_settle  text[];
  fault      text;
BEGIN
  PERFORM headrace.check_submission(
    submit.type, body, submit.title, submit.queue, submit.priority, submit.run_at, submit.max_attempts,
    submit.timeout_seconds, submit.limit_key, marks, submit.idempotency_key);

  SELECT * INTO known FROM headrace.task_types WHERE name = submit.type;
  IF FOUND THEN
    -- Null first: most types have no check.
    IF known.payload_check IS NOT NULL AND NOT payload_checked THEN
      fault := headrace.payload_fault(known.payload_check, body);
      IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'the payload does not fit %: %', submit.type, fault
          USING ERRCODE = 'HR004', HINT = 'The task cannot be submitted like this; nothing was written.';
      END IF;
    END IF;
    IF submit.user_id IS NOT NULL AND NOT trusted AND NOT headrace.may_submit(known.submit, owner) THEN
      RAISE EXCEPTION '% may be submitted by administrators alone, and % is none', submit.type, owner
        USING ERRCODE = 'HR008',
              HINT = 'Declare the type with submit="users", or say trusted => true where your program has seen to it.';
    END IF;
  ELSIF unknown_type IS DISTINCT FROM 'wait' THEN
    RAISE EXCEPTION 'no worker has ever registered the task type %', submit.type
      USING ERRCODE = 'HR007',
            HINT = 'Start a worker that has it, or say unknown_type => ''wait'' if it is not there yet.';
  ELSE
    IF submit.user_id IS NOT NULL AND NOT trusted AND NOT headrace.may_submit(NULL, owner) THEN
      RAISE EXCEPTION '% is not declared yet: whether % may submit it is unknown', submit.type, owner
        USING ERRCODE = 'HR008', HINT = 'Say trusted => true where your program has seen to it.';
    END IF;
    -- It waits in a lane that no worker claims from, until a worker that knows the type has settled the open options.
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

  IF known.units IS NOT NULL THEN
    cost := headrace.units(known.units, body);
  END IF;

  -- Followers are code: only a program that has them can submit such a type.
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
    lane := headrace.assign_lane(known.queue, submit.type, owner, coalesce(key, ''), marks, known.max_attempts = 1);
  ELSE
    lane := headrace.assign_lane(known.queue, submit.type, owner, '', headrace.undeclared(), false);
  END IF;

  seq := nextval('headrace.task_queue_seq_seq');
  INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, priority, queue, run_at, max_attempts,
                              timeout_seconds, labels, limit_key, trace_id, schedule_uid, queued_at, queue_seq,
                              left_to_type, idempotency_key)
  VALUES (task, owner, submit.type, coalesce(submit.title, submit.type), body, known.priority, known.queue,
          coalesce(submit.run_at, now()), known.max_attempts, known.timeout_seconds, nullif(marks, '{}'),
          key, submit.trace_id, submit.schedule_uid, now(), seq, to_settle, submit.idempotency_key);
  INSERT INTO headrace.task_queue (seq, run_at, lane_id, route_id, precedence, task_id, units, delayed)
  VALUES (seq, coalesce(submit.run_at, now()), lane.lane_id, lane.route_id,
          CASE WHEN to_settle IS NULL THEN -known.priority ELSE 0 END, task, cost,
          -- Of a task with an undeclared type, settle_tasks sets it.
          to_settle IS NULL AND coalesce(submit.run_at > now(), false));

  IF coalesce(known.emits_events, true) THEN
    PERFORM headrace.emit_task_events(NULL, ARRAY['task.created'], ARRAY[task], ARRAY[0], NULL, coalesce(known.emits_always, false));
  END IF;
  -- Last: everyone who submits for this user locks the same entitlement.
  IF cost IS NOT NULL THEN
    PERFORM headrace.hold_units(ARRAY[task], ARRAY[owner], ARRAY[cost]);
  END IF;
  -- NOTIFY takes a server-wide lock at commit: only while a worker sleeps.
  PERFORM pg_notify('headrace_tasks', '') FROM headrace.workers WHERE ended_at IS NULL AND asleep LIMIT 1;
  RETURN task;
END
$$;
COMMENT ON FUNCTION headrace.submit(text, jsonb, text, text, text, integer, timestamptz, integer, integer, text, jsonb, text, text, text, text, boolean, boolean) IS 'Submits a task in the caller''s transaction and gives its id; with an idempotency key the same one again. What is left out is as the type says.';
REVOKE EXECUTE ON FUNCTION headrace.submit(text, jsonb, text, text, text, integer, timestamptz, integer, integer, text, jsonb, text, text, text, text, boolean, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.submit(text, jsonb, text, text, text, integer, timestamptz, integer, integer, text, jsonb, text, text, text, text, boolean, boolean) TO headrace_app;

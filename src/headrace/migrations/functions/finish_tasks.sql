-- Ends tasks. Only rows that this worker holds in this attempt count: a late worker changes nothing, and the returned
-- sequence numbers say which ends were written.
--
-- No statistics can spoil its plans. The planner's estimates of task_queue are always out of date, and a wrong join order
-- costs the square of a batch: so the narrow rows are deleted by a list of keys, and matched with the arguments by
-- position, without a join. Plans are made for the batch at hand: half a millisecond, where a generic plan takes three
-- times as long for each row.
--
-- With emits all have succeeded, and subscribers get their events without another statement: also the start of each task
-- whose start is not among told, the starts that were written. With unsure the function looks up which were.
CREATE OR REPLACE FUNCTION headrace.finish_tasks(
  worker_number integer, worker_name text, seqs bigint[], attempts integer[], statuses text[], results jsonb[],
  error_codes text[], error_messages text[], emits boolean DEFAULT false, told bigint[] DEFAULT '{}', unsure boolean DEFAULT false
)
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan SET jit = off
AS $$
DECLARE
  done    bigint[];
  gone    bigint;
  limited boolean;
  priced  boolean[];
  used    integer[];
  tasks   text[];
  tries   integer[];
  claims  timestamptz[];
  start_tasks text[];
  start_tries integer[];
  has_subscribers boolean := emits AND headrace.wants_task_events(ARRAY['task.started', 'task.succeeded']);
  started bigint[] := told;
BEGIN
  IF has_subscribers AND unsure THEN
    started := told || ARRAY(SELECT headrace.started_tasks(worker_number, seqs, attempts));
  END IF;
  -- The delete decides whose they are: a row that was taken from this worker meanwhile is not among them.
  WITH deleted AS (
    DELETE FROM headrace.task_queue AS queued
    WHERE queued.seq = ANY (seqs) AND queued.worker = worker_number
      AND headrace.fence(queued.seq, queued.attempt) = ANY (headrace.fences(seqs, attempts))
    RETURNING queued.seq, queued.task_id, queued.attempt, queued.claimed_at, queued.limited, queued.units, queued.used
  )
  SELECT array_agg(held.seq), array_agg(held.task_id), array_agg(held.attempt), array_agg(held.claimed_at), count(*),
         coalesce(bool_or(held.limited), false), array_agg(held.units IS NOT NULL), array_agg(held.used)
  INTO done, tasks, tries, claims, gone, limited, priced, used
  FROM (SELECT * FROM deleted ORDER BY deleted.seq) AS held;
  IF gone = 0 THEN
    RETURN;
  END IF;
  -- Given in another order (by a program of an earlier release), or some are no longer this worker's.
  IF done <> seqs THEN
    SELECT array_agg(given.status), array_agg(given.result), array_agg(given.error_code), array_agg(given.error_message)
    INTO statuses, results, error_codes, error_messages
    FROM (
      -- One for each: an end may be given twice, or together with that of an earlier attempt.
      SELECT DISTINCT ON (each.seq) each.status, each.result, each.error_code, each.error_message
      FROM unnest(seqs, attempts, statuses, results, error_codes, error_messages)
           AS each (seq, attempt, status, result, error_code, error_message)
      WHERE headrace.fence(each.seq, each.attempt) = ANY (headrace.fences(done, tries))
      ORDER BY each.seq
    ) AS given;
  END IF;

  WITH held AS MATERIALIZED (
    SELECT given.seq, given.task_id, given.attempt, given.claimed_at, coalesce(given.status, 'SUCCEEDED') AS status,
           given.result, given.error_code, given.error_message
    FROM unnest(done, tasks, tries, claims, statuses, results, error_codes, error_messages)
         AS given (seq, task_id, attempt, claimed_at, status, result, error_code, error_message)
  ), written AS (
    UPDATE headrace.tasks AS task
    SET status = held.status, result = held.result, error_code = held.error_code, error_message = held.error_message,
        attempt = held.attempt, worker_id = worker_name, queue_seq = NULL,
        progress = CASE WHEN held.status = 'SUCCEEDED' THEN 100 ELSE task.progress END, eta_sec = NULL,
        started_at = held.claimed_at, finished_at = now(), updated_at = now(), version = task.version + 1
    FROM held
    -- Not what another transaction has ended meanwhile.
    WHERE task.id = held.task_id AND task.queue_seq = held.seq
  )
  INSERT INTO headrace.task_logs (task_id, attempt, status, message)
  SELECT held.task_id, held.attempt, held.status, held.error_message FROM held;

  -- What they cost is settled with their end, whatever the worker's program knows of it.
  IF true = ANY (priced) THEN
    PERFORM headrace.settle_holds(
      array_agg(ended.task), array_agg(coalesce(ended.status, 'SUCCEEDED')), array_agg(ended.used))
    FROM unnest(tasks, statuses, used, priced) AS ended (task, status, used, is_priced)
    WHERE ended.is_priced;
  END IF;
  -- A slot of a limit is free again: a worker may sleep because there was none.
  IF limited AND EXISTS (SELECT FROM headrace.workers WHERE ended_at IS NULL AND asleep) THEN
    PERFORM pg_notify('headrace_tasks', '');
  END IF;
  IF has_subscribers THEN
    -- All starts, then all ends: in order for each task. A start that was written is left out.
    IF started <> '{}' THEN
      SELECT coalesce(array_agg(ended.task), '{}'), coalesce(array_agg(ended.attempt), '{}') INTO start_tasks, start_tries
      FROM unnest(done, tasks, tries) AS ended (seq, task, attempt)
      WHERE ended.seq <> ALL (started);
    ELSE
      start_tasks := tasks;
      start_tries := tries;
    END IF;
    PERFORM headrace.write_task_events(
      NULL,
      array_fill('task.started'::text, ARRAY[cardinality(start_tasks)]) || array_fill('task.succeeded'::text, ARRAY[gone::integer]),
      start_tasks || tasks, start_tries || tries, NULL, false);
  END IF;
  RETURN QUERY SELECT unnest(done);
END
$$;
COMMENT ON FUNCTION headrace.finish_tasks(integer, text, bigint[], integer[], text[], jsonb[], text[], text[], boolean, bigint[], boolean) IS 'Writes the end of tasks that a worker holds; gives those that it did hold. Without statuses all have succeeded.';

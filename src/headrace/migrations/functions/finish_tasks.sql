-- Tasks come to their end. Only rows that this worker holds in this attempt count: a late worker changes nothing, and
-- learns it from what is not given back.
--
-- Written so that no statistics can spoil it. What the planner believes of task_queue is always out of date, and a join
-- that it turns the wrong way round costs the square of a batch: so the rows are looked up one by one (OFFSET 0 keeps the
-- subquery from being merged into the join), and deleted by a list of keys. Plans are made for the batch at hand: half a
-- millisecond, where one made for any batch takes three times as long for each row.
--
-- With emits all have succeeded, and whoever wants their events gets them, without another statement: the starts, too, of
-- those that are not told. Unsure is who cannot know whether a start was told.
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
  tasks   text[];
  tries   integer[];
  start_tasks text[];
  start_tries integer[];
  heard   boolean := emits AND headrace.wants_task_events(ARRAY['task.started', 'task.succeeded']);
  started bigint[] := told;
BEGIN
  IF heard AND unsure THEN
    started := told || ARRAY(SELECT headrace.started_tasks(worker_number, seqs, attempts));
  END IF;
  WITH held AS MATERIALIZED (
    SELECT given.seq, given.attempt, coalesce(given.status, 'SUCCEEDED') AS status, given.result, given.error_code,
           given.error_message, q.task_id, q.claimed_at, q.limited
    FROM unnest(seqs, attempts, statuses, results, error_codes, error_messages)
         AS given (seq, attempt, status, result, error_code, error_message)
    CROSS JOIN LATERAL (
      SELECT queued.task_id, queued.claimed_at, queued.limited
      FROM headrace.task_queue AS queued
      WHERE queued.seq = given.seq AND queued.worker = worker_number AND queued.attempt = given.attempt
      OFFSET 0
    ) AS q
  ), deleted AS (
    DELETE FROM headrace.task_queue AS queued
    WHERE queued.seq = ANY (seqs) AND queued.worker = worker_number
      AND headrace.fence(queued.seq, queued.attempt) = ANY (headrace.fences(seqs, attempts))
    RETURNING 1
  ), written AS (
    UPDATE headrace.tasks AS task
    SET status = held.status, result = held.result, error_code = held.error_code, error_message = held.error_message,
        attempt = held.attempt, worker_id = worker_name, queue_seq = NULL,
        progress = CASE WHEN held.status = 'SUCCEEDED' THEN 100 ELSE task.progress END, eta_sec = NULL,
        started_at = held.claimed_at, finished_at = now(), updated_at = now(), version = task.version + 1
    FROM held
    -- Not what somebody else has ended meanwhile: below it shows that it is gone.
    WHERE task.id = held.task_id AND task.queue_seq = held.seq
  ), logged AS (
    INSERT INTO headrace.task_logs (task_id, attempt, status, message)
    SELECT held.task_id, held.attempt, held.status, held.error_message FROM held
  )
  SELECT array_agg(held.seq), array_agg(held.task_id), array_agg(held.attempt), (SELECT count(*) FROM deleted),
         coalesce(bool_or(held.limited), false)
  INTO done, tasks, tries, gone, limited
  FROM held;

  -- What was ours when the statement began was taken from us before it came to delete it. Nothing counts; try again.
  IF gone <> coalesce(cardinality(done), 0) THEN
    RAISE EXCEPTION 'some of these tasks were taken from worker % meanwhile', worker_number USING ERRCODE = 'HR010';
  END IF;
  -- A slot of a limit is free again: somebody may sleep because there was none.
  IF limited AND EXISTS (SELECT FROM headrace.workers WHERE ended_at IS NULL AND asleep) THEN
    PERFORM pg_notify('headrace_tasks', '');
  END IF;
  IF heard AND gone > 0 THEN
    -- All starts, then all ends: in order for each task. A start that was told is left out.
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

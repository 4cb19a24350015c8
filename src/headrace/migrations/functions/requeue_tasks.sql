-- Returns tasks to the queue: after a failure with attempts left, a snooze, an interruption. A task with a requested
-- cancellation does not return; the caller ends it. For batches of some hundreds: see finish_tasks about joins.
CREATE OR REPLACE FUNCTION headrace.requeue_tasks(
  worker_number integer, seqs bigint[], attempts integer[], outcomes text[], delays interval[], spends boolean[],
  error_codes text[], error_messages text[]
)
RETURNS TABLE (seq bigint, task_id varchar)
LANGUAGE sql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan SET jit = off
AS $$
  WITH returned AS (
    UPDATE headrace.task_queue AS q
    SET worker = NULL, claimed_at = NULL, limited = false, used = NULL, ended = NULL, run_at = now() + given.delay,
        delayed = given.delay > interval '0'
    FROM unnest(seqs, attempts, outcomes, delays, spends, error_codes, error_messages)
         AS given (seq, attempt, outcome, delay, spends, error_code, error_message)
    WHERE q.seq = given.seq AND q.worker = worker_number AND q.attempt = given.attempt AND NOT q.cancel_requested
    RETURNING q.seq, q.task_id, q.attempt, q.run_at, given.outcome, given.spends, given.error_code, given.error_message
  ), written AS (
    UPDATE headrace.tasks AS task
    SET status = 'QUEUED', attempt = returned.attempt, run_at = returned.run_at, worker_id = NULL, started_at = NULL,
        progress = 0, eta_sec = NULL, queued_at = now(), updated_at = now(), version = task.version + 1,
        retries = task.retries + returned.spends::integer,
        error_code = returned.error_code, error_message = returned.error_message
    FROM returned
    WHERE task.id = returned.task_id
    RETURNING returned.seq, returned.task_id, returned.attempt, returned.outcome, returned.error_message
  ), logged AS (
    INSERT INTO headrace.task_logs (task_id, attempt, status, message)
    SELECT task_id, attempt, outcome, error_message FROM written
  )
  SELECT seq, task_id FROM written
$$;
COMMENT ON FUNCTION headrace.requeue_tasks(integer, bigint[], integer[], text[], interval[], boolean[], text[], text[]) IS 'Puts tasks that a worker holds back into the queue.';

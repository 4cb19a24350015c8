-- Returns claimed tasks that were not started to the queue, and gives them. A task with a requested cancellation does not
-- return; the caller ends it.
CREATE OR REPLACE FUNCTION headrace.unclaim_tasks(worker_number integer, seqs bigint[], attempts integer[]) RETURNS SETOF bigint
LANGUAGE sql VOLATILE
SET enable_seqscan = off SET plan_cache_mode = force_custom_plan SET jit = off
AS $$
  UPDATE headrace.task_queue AS q
  SET worker = NULL, claimed_at = NULL, limited = false, attempt = q.attempt - 1
  WHERE q.seq = ANY (seqs) AND q.worker = worker_number AND NOT q.cancel_requested
    AND headrace.fence(q.seq, q.attempt) = ANY (headrace.fences(seqs, attempts))
  RETURNING q.seq
$$;
COMMENT ON FUNCTION headrace.unclaim_tasks(integer, bigint[], integer[]) IS 'Returns claimed tasks that were not started to the queue, and gives them.';

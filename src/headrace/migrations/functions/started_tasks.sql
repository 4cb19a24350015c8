-- Of these claims of a worker, those whose start is on the wide row. Whoever writes an end asks: only what is locked here
-- is certain, for a program cannot know what became of a commit whose answer it did not get.
CREATE OR REPLACE FUNCTION headrace.started_tasks(worker_number integer, seqs bigint[], attempts integer[]) RETURNS SETOF bigint
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

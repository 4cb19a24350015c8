-- Tasks whose time has come join those that can be claimed. Every survey calls it; rows that another worker is releasing at
-- this moment are left to it. Workers that sleep are woken: the caller may not be the one that can take them.
CREATE OR REPLACE FUNCTION headrace.release_delayed(most integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  released integer;
BEGIN
  -- Almost always there is nothing: one look at the index.
  IF NOT EXISTS (SELECT FROM headrace.task_queue AS q WHERE q.delayed AND q.run_at <= now()) THEN
    RETURN 0;
  END IF;
  WITH due AS MATERIALIZED (
    SELECT q.seq FROM headrace.task_queue AS q
    WHERE q.delayed AND q.run_at <= now()
    ORDER BY q.run_at, q.seq
    LIMIT most
    FOR UPDATE SKIP LOCKED
  )
  UPDATE headrace.task_queue AS q SET delayed = false WHERE q.seq = ANY (ARRAY(SELECT due.seq FROM due));
  GET DIAGNOSTICS released = ROW_COUNT;
  IF released > 0 THEN
    PERFORM pg_notify('headrace_tasks', '') FROM headrace.workers WHERE ended_at IS NULL AND asleep LIMIT 1;
  END IF;
  RETURN released;
END
$$;
COMMENT ON FUNCTION headrace.release_delayed(integer) IS 'Makes delayed tasks whose run_at has come claimable; gives how many.';
GRANT EXECUTE ON FUNCTION headrace.release_delayed(integer) TO headrace_app;

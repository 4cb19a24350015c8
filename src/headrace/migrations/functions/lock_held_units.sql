-- Locks what settling tasks writes to, the rows of their schedules and of the entitlements that hold units for them, and
-- waits for it up to wait. The rows of the queue and of the tasks come before it, as everywhere. What is locked here is
-- what headrace.settle_holds would pass over while another transaction has it. 55P03 with the sessions in its detail if it takes
-- longer.
CREATE OR REPLACE FUNCTION headrace.lock_held_units(task_ids text[], wait interval) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog SET enable_seqscan = off SET jit = off SET lock_timeout = 0
AS $$
DECLARE
  first_month date := headrace.typeid_month((SELECT min(given) FROM unnest(task_ids) AS given)) - interval '1 month';
  last_month  date := now() AT TIME ZONE 'UTC' + interval '1 day';
  holding     text[] := ARRAY(
    SELECT DISTINCT held.entitlement_id FROM headrace.usage_ledger AS held
    WHERE held.task_id = ANY (task_ids) AND held.status = 'HELD' AND held.period BETWEEN first_month AND last_month
  );
BEGIN
  PERFORM set_config('lock_timeout', greatest(1, round(extract(epoch FROM wait) * 1000))::text, true);
  BEGIN
    PERFORM FROM headrace.scheduled_tasks
    WHERE uid = ANY (ARRAY(SELECT task.schedule_uid FROM headrace.tasks AS task WHERE task.id = ANY (task_ids)))
    ORDER BY uid
    FOR NO KEY UPDATE;
    PERFORM FROM headrace.entitlements WHERE id = ANY (holding) ORDER BY id FOR NO KEY UPDATE;
  EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION 'another transaction has locked the units of % tasks', cardinality(task_ids)
      USING ERRCODE = '55P03', HINT = 'Try again when that transaction has ended.',
            DETAIL = jsonb_build_object('task_ids', task_ids, 'sessions', headrace.entitlement_lockers(holding))::text;
  END;
END
$$;
COMMENT ON FUNCTION headrace.lock_held_units(text[], interval) IS 'Locks what settling these tasks writes to; waits for it no longer than given.';
REVOKE EXECUTE ON FUNCTION headrace.lock_held_units(text[], interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.lock_held_units(text[], interval) TO headrace_app;

-- Settles what is held for tasks that end, in the transaction of their end. Success commits what was used and releases the
-- rest; a failure and a cancellation release all. Whoever ends a task calls it, behind the task's fence: headrace.finish_tasks
-- for workers and reapers, whatever program they run. What is settled already, or was never held, is left alone.
--
-- What is committed was taken from the entitlement when it was held: only a release writes there, also when the entitlement
-- has ended meanwhile.
--
-- It never waits for an entitlement that another transaction has locked, such as one that has submitted for the same user
-- and is still open: many tasks of many users are settled in one call. It raises 55P03 (lock_not_available) instead, and
-- names the tasks and the sessions in the detail. A caller that can wait locks with headrace.lock_held_units first.
CREATE OR REPLACE FUNCTION headrace.settle_holds(task_ids text[], statuses text[], used integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
  -- Holds are as old as their tasks or younger, give or take what clocks differ: other months are not looked into.
  first_month date := headrace.typeid_month((SELECT min(given) FROM unnest(task_ids) AS given)) - interval '1 month';
  last_month  date := now() AT TIME ZONE 'UTC' + interval '1 day';
  released    record;
  locked      text[];
  blocked     record;
BEGIN
  WITH holds AS MATERIALIZED (
    SELECT hold.*, given.status AS ending,
           CASE WHEN given.status <> 'SUCCEEDED' THEN 0
                WHEN given.used IS NULL THEN hold.units
                -- What ends first is charged first.
                ELSE greatest(0, least(hold.units, given.used - (sum(hold.units) OVER so_far - hold.units)))
           END::integer AS used
    FROM unnest(task_ids, statuses, settle_holds.used) AS given (task_id, status, used)
    CROSS JOIN LATERAL (
      SELECT held.id, held.period, held.user_id, held.task_id, held.entitlement_id, held.consume_unit AS units, held.idempotency_key
      FROM headrace.usage_ledger AS held
      WHERE held.task_id = given.task_id AND held.status = 'HELD' AND held.period BETWEEN first_month AND last_month
        -- A look-up for each, and not NOT EXISTS: as a join it may read all that was ever settled for each hold, where
        -- statistics were taken before the first was.
        AND (
          SELECT settled.id FROM headrace.usage_ledger AS settled
          WHERE settled.hold_id = held.id AND settled.period = held.period
          LIMIT 1
        ) IS NULL
      OFFSET 0
    ) AS hold
    WINDOW so_far AS (PARTITION BY hold.task_id ORDER BY length(hold.idempotency_key), hold.idempotency_key)  -- by part
  ), settled AS (
    INSERT INTO headrace.usage_ledger
      (id, period, user_id, task_id, entitlement_id, hold_id, consume_unit, direction, status, source, idempotency_key)
    SELECT headrace.settlement_id(holds.id, part.status), holds.period, holds.user_id, holds.task_id, holds.entitlement_id,
           holds.id, part.units, part.direction, part.status,
           CASE holds.ending WHEN 'SUCCEEDED' THEN 'TASK_COMPLETE' WHEN 'FAILED' THEN 'TASK_FAIL' ELSE 'TASK_CANCEL' END,
           to_char(holds.period, 'YYYYMM') || part.key || holds.id
    FROM holds
    CROSS JOIN LATERAL (
      VALUES ('COMMITTED', 'DEBIT', ':commit:', holds.used), ('RELEASED', 'CREDIT', ':release:', holds.units - holds.used)
    ) AS part (status, direction, key, units)
    WHERE part.units > 0
  )
  SELECT array_agg(holds.task_id) AS task_ids, array_agg(holds.entitlement_id) AS entitlement_ids,
         array_agg(holds.units - holds.used) AS units
  INTO released
  FROM holds
  WHERE holds.units > holds.used;
  IF released.task_ids IS NULL THEN
    RETURN;
  END IF;

  -- A schedule that fires holds its row, and then units: so the row comes first here, too. A run's end moves it anyway.
  PERFORM FROM headrace.scheduled_tasks
  WHERE uid = ANY (ARRAY(SELECT task.schedule_uid FROM headrace.tasks AS task WHERE task.id = ANY (released.task_ids)))
  ORDER BY uid
  FOR NO KEY UPDATE;
  locked := ARRAY(
    SELECT id FROM headrace.entitlements WHERE id = ANY (released.entitlement_ids) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
  );
  SELECT array_agg(DISTINCT part.task_id) AS task_ids, array_agg(DISTINCT part.id) AS entitlement_ids
  INTO blocked
  FROM unnest(released.task_ids, released.entitlement_ids) AS part (task_id, id)
  WHERE part.id <> ALL (locked);
  IF blocked.task_ids IS NOT NULL THEN
    RAISE EXCEPTION 'another transaction has locked the units of % tasks', cardinality(blocked.task_ids)
      USING ERRCODE = '55P03', HINT = 'Try again when that transaction has ended.',
            DETAIL = jsonb_build_object('task_ids', blocked.task_ids,
                                        'sessions', headrace.entitlement_lockers(blocked.entitlement_ids))::text;
  END IF;
  UPDATE headrace.entitlements AS entitlement
  SET quota_left = entitlement.quota_left + given.units, updated_at = now()
  FROM (
    SELECT part.id, sum(part.units)::integer AS units
    FROM unnest(released.entitlement_ids, released.units) AS part (id, units)
    GROUP BY part.id
  ) AS given
  WHERE entitlement.id = given.id;
END
$$;
COMMENT ON FUNCTION headrace.settle_holds(text[], text[], integer[]) IS 'Commits or releases what is held for tasks that have ended so; used is what they used of it, null for all.';
REVOKE EXECUTE ON FUNCTION headrace.settle_holds(text[], text[], integer[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.settle_holds(text[], text[], integer[]) TO headrace_app;

-- Holds what tasks cost, in the transaction that creates them or sends them into the queue again; all of them or none. The
-- one way to hold, for programs and for headrace.submit. HR006: a user has too few units left.
--
-- What ends first is spent first; a hold may lie in several entitlements. They are locked in the order of their ids, here
-- and where holds are released, after the rows of tasks and schedules: two transactions never wait for each other.
CREATE OR REPLACE FUNCTION headrace.hold_units(
  task_ids text[], user_ids text[], units integer[], hold_ids text[] DEFAULT NULL, again boolean DEFAULT false
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog SET jit = off
AS $$
DECLARE
  offered record;
  missing bigint;
  short   record;
BEGIN
  -- The rows as the transactions that held them before left them.
  SELECT array_agg(locked.id) AS ids, array_agg(locked.user_id) AS user_ids, array_agg(locked.quota_left) AS lefts,
         array_agg(locked.period_end) AS ends
  INTO offered
  FROM (
    SELECT id, user_id, quota_left, period_end
    FROM headrace.entitlements
    WHERE user_id = ANY (hold_units.user_ids) AND status = 'ACTIVE' AND quota_left > 0
      AND period_start <= now() AND period_end > now()
    ORDER BY id
    FOR NO KEY UPDATE
  ) AS locked;

  -- Both sides stand end to end on one line for each user; where two overlap, one pays for the other.
  WITH wanted AS (
    SELECT given.task_id, given.user_id, given.hold_id, given.units,
           sum(given.units) OVER (PARTITION BY given.user_id ORDER BY given.position) AS reach
    FROM unnest(task_ids, hold_units.user_ids, hold_units.units, hold_ids) WITH ORDINALITY AS given (task_id, user_id, units, hold_id, position)
  ), purses AS (
    SELECT purse.id, purse.user_id, purse.quota_left,
           sum(purse.quota_left) OVER (PARTITION BY purse.user_id ORDER BY purse.period_end, purse.id) AS reach
    FROM unnest(offered.ids, offered.user_ids, offered.lefts, offered.ends) AS purse (id, user_id, quota_left, period_end)
  ), parts AS MATERIALIZED (
    SELECT wanted.task_id, wanted.user_id, purses.id AS entitlement_id, part.number,
           CASE WHEN part.number = 1 THEN coalesce(wanted.hold_id, headrace.new_id('led')) ELSE headrace.new_id('led') END AS id,
           (least(wanted.reach, purses.reach)
            - greatest(wanted.reach - wanted.units, purses.reach - purses.quota_left))::integer AS units
    FROM wanted
    JOIN purses ON purses.user_id = wanted.user_id
      AND purses.reach > wanted.reach - wanted.units AND purses.reach - purses.quota_left < wanted.reach
    CROSS JOIN LATERAL (
      SELECT 1 + count(*) AS number FROM purses AS earlier
      WHERE earlier.user_id = wanted.user_id AND earlier.reach < purses.reach
        AND earlier.reach > wanted.reach - wanted.units
    ) AS part
  ), spent AS (
    UPDATE headrace.entitlements AS entitlement
    SET quota_left = entitlement.quota_left - taken.units, updated_at = now()
    FROM (SELECT parts.entitlement_id, sum(parts.units)::integer AS units FROM parts GROUP BY parts.entitlement_id) AS taken
    WHERE entitlement.id = taken.entitlement_id
  ), held AS (
    INSERT INTO headrace.usage_ledger
      (id, period, user_id, task_id, entitlement_id, consume_unit, direction, status, source, idempotency_key)
    SELECT parts.id, month.first, parts.user_id, parts.task_id, parts.entitlement_id, parts.units, 'DEBIT', 'HELD',
           'TASK_CREATE', to_char(month.first, 'YYYYMM') || ':hold:' || parts.task_id || ':' || round.number || ':' || parts.number
    FROM parts
    CROSS JOIN LATERAL (SELECT headrace.typeid_month(parts.id) AS first) AS month
    CROSS JOIN LATERAL (
      SELECT CASE WHEN again THEN (
        SELECT count(*) FROM headrace.usage_ledger AS before WHERE before.task_id = parts.task_id AND before.status = 'HELD'
      ) ELSE 0 END AS number
    ) AS round
  )
  SELECT (SELECT sum(given) FROM unnest(hold_units.units) AS given) - coalesce(sum(parts.units), 0) INTO missing FROM parts;
  IF missing = 0 THEN
    PERFORM headrace.alert_quota(offered.ids, hold_units.user_ids, hold_units.units);
    RETURN;
  END IF;

  SELECT wanted.user_id, wanted.needed, coalesce(purse.left_over, 0) AS left_over, coalesce(
    (SELECT min(period_start) FROM headrace.entitlements
     WHERE user_id = wanted.user_id AND status = 'ACTIVE' AND period_start > now()),
    (SELECT min(period_end) FROM headrace.entitlements
     WHERE user_id = wanted.user_id AND status = 'ACTIVE' AND period_start <= now() AND period_end > now())
  ) AS renews_at
  INTO short
  FROM (
    SELECT given.user_id, sum(given.units) AS needed FROM unnest(hold_units.user_ids, hold_units.units) AS given (user_id, units) GROUP BY 1
  ) AS wanted
  LEFT JOIN (
    SELECT given.user_id, sum(given.quota_left) AS left_over
    FROM unnest(offered.user_ids, offered.lefts) AS given (user_id, quota_left) GROUP BY 1
  ) AS purse ON purse.user_id = wanted.user_id
  WHERE wanted.needed > coalesce(purse.left_over, 0)
  ORDER BY wanted.user_id
  LIMIT 1;
  RAISE EXCEPTION 'the quota does not suffice: % needed, % left', short.needed, short.left_over
    USING ERRCODE = 'HR006', HINT = 'Nothing was written. Wait for the next period, or get a larger plan.',
          DETAIL = jsonb_build_object('needed', short.needed, 'left', short.left_over, 'renews_at', short.renews_at)::text;
END
$$;
COMMENT ON FUNCTION headrace.hold_units(text[], text[], integer[], text[], boolean) IS 'Holds what these tasks cost from their users'' entitlements; with again for tasks that were held for before.';
REVOKE EXECUTE ON FUNCTION headrace.hold_units(text[], text[], integer[], text[], boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.hold_units(text[], text[], integer[], text[], boolean) TO headrace_app;

-- Writes quota.reached for users who reach 80 or 100 percent of their quota by holding these units, once for each period.
-- headrace.hold_units calls it after the hold; it has locked these entitlements. What is used up is not locked, but counts
-- as well, and is marked: units that come back to it would announce the same percentage again. One that another transaction has
-- locked is left out, so that neither waits for the other.
CREATE OR REPLACE FUNCTION headrace.alert_quota(entitlement_ids text[], user_ids text[], units integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog SET jit = off SET timezone = 'UTC'
AS $$
BEGIN
  WITH spent AS (
    SELECT given.user_id, sum(given.units) AS units FROM unnest(user_ids, alert_quota.units) AS given (user_id, units) GROUP BY 1
  ), quota AS (
    SELECT spent.user_id, spent.units, whole.total, whole.left_over, whole.renews_at
    FROM spent
    CROSS JOIN LATERAL (
      SELECT sum(quota_total) AS total, sum(quota_left) AS left_over, min(period_end) AS renews_at
      FROM headrace.entitlements
      WHERE user_id = spent.user_id AND status = 'ACTIVE' AND period_start <= now() AND period_end > now()
    ) AS whole
  ), reached AS (
    SELECT DISTINCT ON (quota.user_id) quota.*, level.percent
    FROM quota CROSS JOIN (VALUES (80), (100)) AS level (percent)
    WHERE quota.left_over * 100 <= quota.total * (100 - level.percent)
      AND (quota.left_over + quota.units) * 100 > quota.total * (100 - level.percent)
    ORDER BY quota.user_id, level.percent DESC
  ), marked AS (
    UPDATE headrace.entitlements AS entitlement SET alerted_percent = reached.percent
    FROM reached
    WHERE entitlement.user_id = reached.user_id AND coalesce(entitlement.alerted_percent, 0) < reached.percent
      AND entitlement.id IN (
        SELECT id FROM headrace.entitlements
        WHERE user_id IN (SELECT user_id FROM reached) AND status = 'ACTIVE' AND period_start <= now() AND period_end > now()
        ORDER BY id
        FOR NO KEY UPDATE SKIP LOCKED
      )
    RETURNING entitlement.id, entitlement.user_id
  )
  INSERT INTO headrace.outbox_events
    (event_id, event_type, event_version, aggregate_type, aggregate_id, user_id, payload_json, headers_json, status)
  SELECT headrace.new_id('evt'), 'quota.reached', 1, 'account', reached.user_id, reached.user_id,
         jsonb_build_object('user_id', reached.user_id, 'percent', reached.percent, 'total', reached.total,
                            'left', reached.left_over, 'renews_at', reached.renews_at),
         '{}', 'PENDING'
  FROM reached
  WHERE reached.user_id IN (SELECT marked.user_id FROM marked WHERE marked.id = ANY (entitlement_ids));
  IF FOUND THEN
    PERFORM headrace.wake_relays();
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.alert_quota(text[], text[], integer[]) IS 'Writes quota.reached for users who reach 80 or 100 percent of their quota by these units.';
REVOKE EXECUTE ON FUNCTION headrace.alert_quota(text[], text[], integer[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.alert_quota(text[], text[], integer[]) TO headrace_app;

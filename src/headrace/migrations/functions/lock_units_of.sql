-- Locks the entitlements that headrace.hold_units would spend for these users, unless others have them locked, and gives
-- the users whose units are locked: a transaction that creates tasks of many users leaves theirs to a later one.
CREATE OR REPLACE FUNCTION headrace.lock_units_of(user_ids text[]) RETURNS SETOF text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog SET jit = off
AS $$
DECLARE
  locked text[] := ARRAY(
    SELECT id FROM headrace.entitlements
    WHERE user_id = ANY (user_ids) AND status = 'ACTIVE' AND quota_left > 0 AND period_start <= now() AND period_end > now()
    ORDER BY id
    FOR NO KEY UPDATE SKIP LOCKED
  );
BEGIN
  RETURN QUERY SELECT DISTINCT entitlement.user_id::text
  FROM headrace.entitlements AS entitlement
  WHERE entitlement.user_id = ANY (user_ids) AND entitlement.status = 'ACTIVE' AND entitlement.quota_left > 0
    AND entitlement.period_start <= now() AND entitlement.period_end > now() AND entitlement.id <> ALL (locked);
END
$$;
COMMENT ON FUNCTION headrace.lock_units_of(text[]) IS 'Locks the entitlements of these users that no other transaction has locked; gives the users whose units are locked.';
REVOKE EXECUTE ON FUNCTION headrace.lock_units_of(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.lock_units_of(text[]) TO headrace_app;

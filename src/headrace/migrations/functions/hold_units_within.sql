-- headrace.hold_units for callers that do not wait for ever: 55P03 with the sessions in its detail if another transaction
-- keeps the units of one of these users locked for longer than wait.
CREATE OR REPLACE FUNCTION headrace.hold_units_within(
  wait interval, task_ids text[], user_ids text[], units integer[], hold_ids text[], again boolean
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog SET lock_timeout = 0
AS $$
BEGIN
  PERFORM set_config('lock_timeout', greatest(1, round(extract(epoch FROM wait) * 1000))::text, true);
  PERFORM headrace.hold_units(task_ids, user_ids, units, hold_ids, again);
EXCEPTION WHEN lock_not_available THEN
  RAISE EXCEPTION 'another transaction has locked the units of this user'
    USING ERRCODE = '55P03', HINT = 'Try again when that transaction has ended.',
          DETAIL = jsonb_build_object('sessions', headrace.entitlement_lockers(ARRAY(
            SELECT id FROM headrace.entitlements WHERE user_id = ANY (hold_units_within.user_ids) AND status = 'ACTIVE'
          )))::text;
END
$$;
COMMENT ON FUNCTION headrace.hold_units_within(interval, text[], text[], integer[], text[], boolean) IS 'Holds what these tasks cost; waits no longer than given for locked units.';
REVOKE EXECUTE ON FUNCTION headrace.hold_units_within(interval, text[], text[], integer[], text[], boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.hold_units_within(interval, text[], text[], integer[], text[], boolean) TO headrace_app;

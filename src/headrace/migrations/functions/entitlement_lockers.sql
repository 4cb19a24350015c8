-- The sessions that keep rows of entitlements locked, as a JSON array of pid, user, application and age in seconds; the age
-- is null for another role's session, unless this role has pg_read_all_stats. Read from the rows themselves, without waiting
-- for a lock. A row locked by several transactions names them by a MultiXactId: xmax does not say whether it is one, and
-- PostgreSQL refuses a wrong one. pg_locks lists only open transactions, so a wrong guess finds no session.
CREATE OR REPLACE FUNCTION headrace.entitlement_lockers(entitlement_ids text[]) RETURNS jsonb
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog SET jit = off
AS $$
DECLARE
  lockers xid[] := ARRAY(SELECT DISTINCT xmax::text FROM headrace.entitlements WHERE id = ANY (entitlement_ids))::xid[];
  members xid[] := lockers;
  locker  xid;
BEGIN
  FOREACH locker IN ARRAY lockers LOOP
    BEGIN
      members := members || ARRAY(SELECT member.xid FROM pg_get_multixact_members(locker) AS member);
    EXCEPTION WHEN others THEN
      NULL;
    END;
  END LOOP;
  RETURN coalesce((
    SELECT jsonb_agg(found.session ORDER BY found.pid)
    FROM (
      SELECT DISTINCT ON (activity.pid) activity.pid, jsonb_build_object(
        'pid', activity.pid, 'user', activity.usename, 'application', nullif(activity.application_name, ''),
        'age', round(extract(epoch FROM clock_timestamp() - activity.xact_start), 3)) AS session
      FROM pg_locks AS held
      JOIN pg_stat_activity AS activity ON activity.pid = held.pid
      WHERE held.locktype = 'transactionid' AND held.granted AND held.mode = 'ExclusiveLock'
        AND held.transactionid = ANY (members) AND held.pid <> pg_backend_pid()
    ) AS found
  ), '[]');
END
$$;
COMMENT ON FUNCTION headrace.entitlement_lockers(text[]) IS 'The sessions whose open transactions keep these entitlements locked.';
REVOKE EXECUTE ON FUNCTION headrace.entitlement_lockers(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.entitlement_lockers(text[]) TO headrace_app;

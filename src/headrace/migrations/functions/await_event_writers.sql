-- The other side of hold_event_interests: waits until no transaction is open that has decided about events, and keeps new
-- ones from deciding until this one ends. A waiting lock request blocks all later ones: so it waits only for a
-- moment, pauses for longer, and tries again. False: a transaction stays open all the time.
CREATE OR REPLACE FUNCTION headrace.await_event_writers(most interval) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog
SET lock_timeout = '20ms'
AS $$
DECLARE
  ends_at timestamptz := clock_timestamp() + most;
BEGIN
  LOOP
    BEGIN
      PERFORM pg_advisory_xact_lock(4747120017);
      RETURN true;
    EXCEPTION WHEN lock_not_available THEN
      IF clock_timestamp() >= ends_at THEN
        RETURN false;
      END IF;
    END;
    PERFORM pg_sleep(0.06 + 0.04 * random());
  END LOOP;
END
$$;
COMMENT ON FUNCTION headrace.await_event_writers(interval) IS 'Waits until every transaction is over that has decided which events to write; false if that took too long.';
REVOKE EXECUTE ON FUNCTION headrace.await_event_writers(interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.await_event_writers(interval) TO headrace_app;

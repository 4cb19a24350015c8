-- Wakes relays that sleep, at the commit. Only when one does: NOTIFY takes a lock of the whole server.
CREATE OR REPLACE FUNCTION headrace.wake_relays() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM pg_catalog.pg_notify('headrace_events', '')
  FROM headrace.relays WHERE asleep AND heartbeat_at > pg_catalog.now() - interval '1 minute' LIMIT 1;
END
$$;
COMMENT ON FUNCTION headrace.wake_relays() IS 'Tells a relay that sleeps that there are events.';
REVOKE EXECUTE ON FUNCTION headrace.wake_relays() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.wake_relays() TO headrace_app;

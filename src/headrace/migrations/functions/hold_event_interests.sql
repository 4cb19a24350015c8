-- Whoever decides whether an event is wanted holds this until the transaction ends, and reads the interests afterwards, in
-- a statement of its own. So an interest that is declared meanwhile waits for the decision to be committed: what commits
-- after the declaration has seen it.
CREATE OR REPLACE FUNCTION headrace.hold_event_interests() RETURNS void
LANGUAGE sql VOLATILE
RETURN pg_catalog.pg_advisory_xact_lock_shared(4747120017);
COMMENT ON FUNCTION headrace.hold_event_interests() IS 'Keeps interests in events from being added until this transaction ends.';
REVOKE EXECUTE ON FUNCTION headrace.hold_event_interests() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.hold_event_interests() TO headrace_app;

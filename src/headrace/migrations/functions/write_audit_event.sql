-- Writes an event of the audit trail. What headrace.audit.record makes of a change comes as one object, so that it can go in one
-- message with the COMMIT; the plan of the INSERT is kept, which takes longer to make than the row.
--
-- Events are dated by the database's clock, which is one for all machines. The id must hold the same millisecond, so it is
-- completed here: the first ten of its 26 letters are the time, and the tail has the other sixteen. clock_timestamp() rather
-- than now(), so that events of a long transaction are dated in order.
CREATE OR REPLACE FUNCTION headrace.write_audit_event(event jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  at     timestamptz := date_trunc('milliseconds', coalesce((event ->> 'now')::timestamptz, clock_timestamp()));
  millis bigint := (extract(epoch FROM at) * 1000)::bigint;
  id     text := 'aud_' || headrace.letters_of_millis(millis) || (event ->> 'tail');
BEGIN
  INSERT INTO headrace.audit_events (
    id, "timestamp", created_at, action, resource_type, resource, "user", space_path, diff_object,
    client_ip, user_agent, request_method, request_id, data, actor_type, trace_id
  ) VALUES (
    id, millis, at, event ->> 'action', event ->> 'resource_type', event -> 'resource', event -> 'user',
    event ->> 'space_path', nullif(event -> 'diff_object', 'null'), event ->> 'client_ip', event ->> 'user_agent',
    event ->> 'request_method', event ->> 'request_id', nullif(event -> 'data', 'null'), event ->> 'actor_type',
    event ->> 'trace_id'
  );
  RETURN id;
END
$$;
COMMENT ON FUNCTION headrace.write_audit_event(jsonb) IS 'Writes an event of the audit trail as headrace.audit.record has made it, and gives its id.';
REVOKE EXECUTE ON FUNCTION headrace.write_audit_event(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.write_audit_event(jsonb) TO headrace_app;

-- What an audit event must be, as one function. PostgreSQL reads every CHECK of a table again for every statement, and
-- forty names in a list are long reading: nine CHECKs took two fifths of the time of writing an event. A function's body
-- is read once in a session. So a new name in a list is a new function, and no row has to be looked at for it.
-- The rules keep their names: the error names the broken rule, as a constraint of that name would. (actor_type's CHECK
-- stays: it is 002's own, and short.) A CHECK's operators are bound when it is created, a body's by the search_path: it is
-- set, or a role that may create operators could make every event pass.
CREATE OR REPLACE FUNCTION headrace.is_audit_event(
  id text, millis bigint, created_at timestamptz, action text, resource_type text, resource jsonb, principal jsonb,
  diff_object jsonb, client_ip text
)
RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog
AS $$
DECLARE
  broken text := CASE
    WHEN millis <= 0 THEN 'timestamp'
    WHEN action NOT IN (
      'created', 'updated', 'deleted', 'read', 'enabled', 'disabled', 'bypassed', 'forcePush',
      'login', 'logout', 'granted', 'revoked'
    ) THEN 'action'
    WHEN resource_type NOT IN (
      -- the document's seventeen
      'cluster', 'pod', 'deployment', 'service', 'configMap', 'secret',
      'database', 'databaseInstance', 'databaseUser',
      'minio', 'redis', 'mysql', 'postgresql',
      'user', 'role', 'instance', 'scheduledTask',
      -- the product's own, by the document's guide; the same list is in headrace.audit
      'account', 'session', 'apiKey',
      'task', 'execution', 'queue', 'worker', 'lock', 'asset',
      'plan', 'subscription', 'entitlement', 'payment', 'ledger',
      'outboxEvent', 'webhookEndpoint', 'webhookDelivery', 'notification',
      'systemConfig', 'techRisk', 'auditTrail', 'archive', 'partition'
    ) THEN 'resource_type'
    -- The id decides the timestamp and the timestamp decides created_at: so the key is unique in the id alone.
    -- A TypeID: aud_ and the 128 bits of a UUID in 26 letters, of which the first holds only three bits.
    WHEN id !~ '^aud_[0-7][0-9a-hjkmnp-tv-z]{25}$' OR headrace.typeid_millis(id) <> millis THEN 'id'
    WHEN extract(epoch FROM created_at) * 1000 <> millis THEN 'created_at'  -- exactly: it is a numeric
    WHEN coalesce(resource ->> 'type', '') <> resource_type OR resource ->> 'identifier' IS NULL THEN 'resource'
    WHEN coalesce(principal ->> 'uid', '') = ''
      OR coalesce(principal ->> 'type', '') NOT IN ('user', 'service', 'anonymous') THEN 'user'
    WHEN octet_length(diff_object ->> 'old_object') > 65536
      OR octet_length(diff_object ->> 'new_object') > 65536 THEN 'diff_object'
    -- The cast is the check: a value that is no address fails it, so that audit_logs.ip can never fail.
    WHEN client_ip::inet IS NULL AND client_ip IS NOT NULL THEN 'client_ip'
  END;
BEGIN
  IF broken IS NULL THEN
    RETURN true;
  END IF;
  RAISE EXCEPTION 'new row for relation "audit_events" violates check constraint "ck_audit_events_%"', broken
    USING ERRCODE = 'check_violation', SCHEMA = 'headrace', TABLE = 'audit_events', CONSTRAINT = 'ck_audit_events_' || broken;
END
$$;
COMMENT ON FUNCTION headrace.is_audit_event(text, bigint, timestamptz, text, text, jsonb, jsonb, jsonb, text) IS 'What an audit event must be: true, or an error that names the rule which is broken.';
REVOKE EXECUTE ON FUNCTION headrace.is_audit_event(text, bigint, timestamptz, text, text, jsonb, jsonb, jsonb, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.is_audit_event(text, bigint, timestamptz, text, text, jsonb, jsonb, jsonb, text) TO headrace_app;

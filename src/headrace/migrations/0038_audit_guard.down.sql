REVOKE SELECT ON SEQUENCE headrace.audit_events_seq FROM headrace_app;
DROP TRIGGER tr_audit_seals_follow ON headrace.audit_seals;
DROP FUNCTION headrace.refuse_loose_seal();

CREATE INDEX idx_audit_events_seq ON headrace.audit_events (seq);
CREATE OR REPLACE FUNCTION headrace.adopt_partition(parent regclass, partition regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  owner  text := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = parent);
  suffix text := (SELECT substr(child.relname, length(mother.relname) + 1)
                  FROM pg_class AS child, pg_class AS mother
                  WHERE child.oid = partition AND mother.oid = parent);
  guard  record;
  index  record;
BEGIN
  FOR index IN
    SELECT inhrelid::regclass AS name, relname || suffix AS wanted
    FROM pg_index
    JOIN pg_inherits ON inhrelid = indexrelid
    JOIN pg_class ON pg_class.oid = inhparent
    WHERE indrelid = partition
  LOOP
    EXECUTE format('ALTER INDEX %s RENAME TO %I', index.name, index.wanted);
  END LOOP;
  FOR guard IN
    SELECT tgname, tgfoid::regproc AS function
    FROM pg_trigger
    WHERE tgrelid = parent AND tgtype & 32 <> 0  -- 32: TRUNCATE
  LOOP
    EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION %s()',
                   guard.tgname, partition, guard.function);
  END LOOP;
  -- Writes go through the parent and its rights; reading one partition alone is what archiving and sealing do.
  EXECUTE format('GRANT SELECT ON %s TO headrace_app', partition);
  IF owner <> current_user THEN
    EXECUTE format('ALTER TABLE %s OWNER TO %I', partition, owner);
  END IF;
END
$$;

DO $$
DECLARE
  index record;
BEGIN
  FOR index IN  -- partitions name theirs as adopt_partition would, and lose the key of their own
    SELECT inhrelid::regclass AS name, substr(partition.relname, length('audit_events') + 1) AS suffix
    FROM pg_inherits
    JOIN pg_index ON indexrelid = inhrelid
    JOIN pg_class AS partition ON partition.oid = indrelid
    WHERE inhparent = 'headrace.idx_audit_events_seq'::regclass
  LOOP
    EXECUTE format('DROP INDEX headrace.%I', 'uk_audit_events_seq' || index.suffix);
    EXECUTE format('ALTER INDEX %s RENAME TO %I', index.name, 'idx_audit_events_seq' || index.suffix);
  END LOOP;
END
$$;

ALTER TABLE headrace.task_executions DROP CONSTRAINT ck_task_executions_execution_uid;
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
    WHEN headrace.typeid_millis(id) <> millis THEN 'id'
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

DROP TRIGGER tr_audit_events_time ON headrace.audit_events;
DROP FUNCTION headrace.refuse_other_time();
ALTER TABLE headrace.audit_events DROP CONSTRAINT ck_audit_events_seq;
REVOKE INSERT (
  id, "timestamp", action, resource_type, resource, "user", space_path, diff_object, client_ip, user_agent,
  request_method, request_id, data, created_at, actor_type, trace_id
) ON headrace.audit_events FROM headrace_app;
GRANT INSERT ON headrace.audit_events TO headrace_app;

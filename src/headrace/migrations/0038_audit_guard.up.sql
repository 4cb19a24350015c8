-- What the application's role may decide about an audit event, and what only the database decides.

-- The number decides where an event is looked for when the trail is verified. Whoever could choose it could add to a month
-- that is long sealed. A column that is not named here takes its default, the sequence.
REVOKE INSERT ON headrace.audit_events FROM headrace_app;
GRANT INSERT (
  id, "timestamp", action, resource_type, resource, "user", space_path, diff_object, client_ip, user_agent,
  request_method, request_id, data, created_at, actor_type, trace_id
) ON headrace.audit_events TO headrace_app;
-- NOT VALID: a trail that was added to before this is not in the way of the upgrade. `headrace audit verify` finds it.
ALTER TABLE headrace.audit_events ADD CONSTRAINT ck_audit_events_seq CHECK (seq > 0) NOT VALID;

-- The time is in the id, and decides the month; a trigger could not move the row to another. So it is compared: the
-- application writes events of now, by the database's clock. Only the owner brings those of another time, when it imports.
CREATE FUNCTION headrace.refuse_other_time() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF pg_has_role(current_user, 'headrace_owner', 'USAGE') THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'an event of % cannot be written now (%)', NEW.created_at, TG_NAME
    USING ERRCODE = 'insufficient_privilege', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME,
          HINT = 'Only the owner of the tables brings events of another time: see `headrace audit import`.';
END
$$;
COMMENT ON FUNCTION headrace.refuse_other_time() IS 'Trigger: refuses an event that is not of now, unless the owner brings it.';
CREATE TRIGGER tr_audit_events_time BEFORE INSERT ON headrace.audit_events
  FOR EACH ROW
  WHEN (NEW.created_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 minute')
  EXECUTE FUNCTION headrace.refuse_other_time();

-- An id is a TypeID: aud_ and the 128 bits of a UUID in 26 letters, of which the first holds only three bits.
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

ALTER TABLE headrace.task_executions ADD CONSTRAINT ck_task_executions_execution_uid
  CHECK (execution_uid ~ '^exe_[0-7][0-9a-hjkmnp-tv-z]{25}$');

-- One number is one event. A unique key of a partitioned table holds the partition column, and (seq, created_at) would
-- let a number come back a millisecond later. So each month has a key of its own on the number alone. Over all months it
-- follows from the sequence, which alone gives numbers, and `headrace audit verify` looks for those that came otherwise.
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
  IF parent = 'headrace.audit_events'::regclass THEN
    EXECUTE format('CREATE UNIQUE INDEX %I ON %s (seq)', 'uk_audit_events_seq' || suffix, partition);
  END IF;
  -- Writes go through the parent and its rights; reading one partition alone is what archiving and sealing do.
  EXECUTE format('GRANT SELECT ON %s TO headrace_app', partition);
  IF owner <> current_user THEN
    EXECUTE format('ALTER TABLE %s OWNER TO %I', partition, owner);
  END IF;
END
$$;

DO $$
DECLARE
  partition record;
BEGIN
  FOR partition IN
    SELECT inhrelid::regclass AS name, substr(relname, length('audit_events') + 1) AS suffix
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = 'headrace.audit_events'::regclass
  LOOP
    EXECUTE format('CREATE UNIQUE INDEX %I ON %s (seq)', 'uk_audit_events_seq' || partition.suffix, partition.name);
  END LOOP;
END
$$;
DROP INDEX headrace.idx_audit_events_seq;

-- A seal that follows none, or that claims numbers which nobody has, would keep all later events from being sealed.
CREATE FUNCTION headrace.refuse_loose_seal() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  last record;
BEGIN
  SELECT number, chain INTO last FROM headrace.audit_seals ORDER BY number DESC LIMIT 1;
  IF NEW.number = coalesce(last.number, 0) + 1
    AND NEW.previous = coalesce(last.chain, decode(repeat('00', 32), 'hex'))
    AND NEW.last_seq <= (SELECT last_value FROM headrace.audit_events_seq)
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'seal % does not follow the last one (%)', NEW.number, TG_NAME
    USING ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END
$$;
COMMENT ON FUNCTION headrace.refuse_loose_seal() IS 'Trigger: a seal follows the last one, over numbers that were given out.';
CREATE TRIGGER tr_audit_seals_follow BEFORE INSERT ON headrace.audit_seals
  FOR EACH ROW EXECUTE FUNCTION headrace.refuse_loose_seal();
GRANT SELECT ON SEQUENCE headrace.audit_events_seq TO headrace_app;

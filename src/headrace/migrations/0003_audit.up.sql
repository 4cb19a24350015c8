-- One trail of who did what. Events are only ever added; whole expired months leave it.

CREATE SEQUENCE headrace.audit_events_seq;

CREATE TABLE headrace.audit_events (
  id                 varchar(255) NOT NULL,
  "timestamp"        bigint NOT NULL
                     CONSTRAINT ck_audit_events_timestamp CHECK ("timestamp" > 0),
  action             varchar(64) NOT NULL
                     CONSTRAINT ck_audit_events_action CHECK (action IN (
                       'created', 'updated', 'deleted', 'read', 'enabled', 'disabled', 'bypassed', 'forcePush',
                       'login', 'logout', 'granted', 'revoked'
                     )),
  resource_type      varchar(64) NOT NULL
                     CONSTRAINT ck_audit_events_resource_type CHECK (resource_type IN (
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
                     )),
  resource           jsonb NOT NULL,
  "user"             jsonb NOT NULL,
  space_path         varchar(512),
  diff_object        jsonb,
  client_ip          varchar(45),
  user_agent         text,
  request_method     varchar(16),
  request_id         varchar(128),
  data               jsonb,
  created_at         timestamptz NOT NULL,
  actor_type         varchar(16) NOT NULL
                     CONSTRAINT ck_audit_events_actor_type CHECK (actor_type IN ('USER', 'ADMIN', 'SYSTEM')),
  trace_id           varchar(64),
  seq                bigint NOT NULL DEFAULT nextval('headrace.audit_events_seq'),
  PRIMARY KEY (id, created_at),
  -- The id decides the timestamp and the timestamp decides created_at: so the key above is unique in the id alone.
  CONSTRAINT ck_audit_events_id CHECK (headrace.typeid_millis(id) = "timestamp"),
  CONSTRAINT ck_audit_events_created_at CHECK (created_at = headrace.instant_of_millis("timestamp")),
  CONSTRAINT ck_audit_events_resource CHECK (
    coalesce(resource ->> 'type', '') = resource_type AND resource ->> 'identifier' IS NOT NULL
  ),
  CONSTRAINT ck_audit_events_user CHECK (
    coalesce("user" ->> 'uid', '') <> '' AND coalesce("user" ->> 'type', '') IN ('user', 'service', 'anonymous')
  ),
  CONSTRAINT ck_audit_events_diff_object CHECK (
    octet_length(diff_object ->> 'old_object') <= 65536 AND octet_length(diff_object ->> 'new_object') <= 65536
  ),
  -- The cast is the check: a value that is no address fails it, so that audit_logs.ip can never fail.
  CONSTRAINT ck_audit_events_client_ip CHECK (client_ip::inet IS NOT NULL OR client_ip IS NULL)
) PARTITION BY RANGE (created_at);
ALTER SEQUENCE headrace.audit_events_seq OWNED BY headrace.audit_events.seq;

CREATE INDEX idx_audit_events_timestamp ON headrace.audit_events ("timestamp" DESC);
CREATE INDEX idx_audit_events_client_ip ON headrace.audit_events (client_ip, "timestamp" DESC);
CREATE INDEX idx_audit_events_request_id ON headrace.audit_events (request_id);
-- Also serves resource_type alone (idx_audit_events_resource_type of the document).
CREATE INDEX idx_audit_events_composite ON headrace.audit_events (resource_type, action, "timestamp" DESC);
CREATE INDEX idx_audit_events_resource ON headrace.audit_events ((resource ->> 'identifier'), "timestamp" DESC);
CREATE INDEX idx_audit_events_user ON headrace.audit_events (("user" ->> 'uid'), "timestamp" DESC);
-- What the view below is searched by. The second also serves action alone (idx_audit_events_action).
CREATE INDEX idx_audit_logs_actor_created_at
  ON headrace.audit_events (actor_type, (("user" ->> 'uid')::varchar(64)), created_at DESC);
CREATE INDEX idx_audit_logs_action_created_at ON headrace.audit_events (action, created_at DESC);
CREATE INDEX idx_audit_logs_trace_id ON headrace.audit_events (trace_id);

COMMENT ON TABLE headrace.audit_events IS 'The audit trail: monthly partitions by created_at, never updated, deleted or truncated.';
COMMENT ON COLUMN headrace.audit_events.id IS 'TypeID aud_…; its millisecond is timestamp.';
COMMENT ON COLUMN headrace.audit_events."timestamp" IS 'Unix milliseconds.';
COMMENT ON COLUMN headrace.audit_events.resource IS '{"type": …, "identifier": …, "data": {name: text}}';
COMMENT ON COLUMN headrace.audit_events."user" IS '{"uid": …, "username": …, "type": "user" | "service" | "anonymous"}';
COMMENT ON COLUMN headrace.audit_events.diff_object IS '{"old_object": JSON as text, "new_object": JSON as text, "old_object_truncated": bool, "new_object_truncated": bool, "truncated_fields": [name]}; each object at most 64 KB.';
COMMENT ON COLUMN headrace.audit_events.client_ip IS 'An address as inet reads it: no port, no zone.';
COMMENT ON COLUMN headrace.audit_events.created_at IS 'The same instant as timestamp. No default: it comes with the id.';
COMMENT ON COLUMN headrace.audit_events.seq IS 'Grows with each insert, with gaps: the bigint id of audit_logs, and the order of sealing.';

CREATE TRIGGER tr_audit_events_refuse_rewriting BEFORE UPDATE OR DELETE ON headrace.audit_events
  FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE TRIGGER tr_audit_events_refuse_truncate BEFORE TRUNCATE ON headrace.audit_events
  FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();

-- Nothing is ever refused for want of a month: it lands here, and operations raises the alarm.
CREATE TABLE headrace.audit_events_default PARTITION OF headrace.audit_events DEFAULT;
SELECT headrace.adopt_partition('headrace.audit_events', 'headrace.audit_events_default');
SELECT headrace.create_month_partitions(
  'headrace.audit_events', (now() AT TIME ZONE 'UTC' - interval '1 month')::date, (now() AT TIME ZONE 'UTC' + interval '3 months')::date
);


CREATE VIEW headrace.audit_logs AS
SELECT
  seq                                            AS id,
  (CASE WHEN "user" ->> 'type' = 'user'
        THEN "user" ->> 'uid' END)::varchar(64)  AS user_id,
  actor_type                                     AS actor_type,
  ("user" ->> 'uid')::varchar(64)                AS actor_id,
  action                                         AS action,
  resource_type::varchar(32)                     AS target_type,
  (resource ->> 'identifier')::varchar(64)       AS target_id,
  client_ip::inet                                AS ip,
  user_agent                                     AS user_agent,
  trace_id                                       AS trace_id,
  request_id::varchar(64)                        AS request_id,
  jsonb_strip_nulls(jsonb_build_object(
    'event_id', id,
    'username', "user" -> 'username',
    'resource', resource -> 'data',
    'diff', diff_object,
    'data', data,
    'request_method', request_method,
    'space_path', space_path
  ))                                             AS detail_json,
  created_at                                     AS created_at
FROM headrace.audit_events;
COMMENT ON VIEW headrace.audit_logs IS 'The trail under the watermark service''s names. Written only through audit_events.';
COMMENT ON COLUMN headrace.audit_logs.user_id IS 'Null when a service or nobody known acted.';
COMMENT ON COLUMN headrace.audit_logs.detail_json IS 'What the trail knows beyond these columns: event_id, username, resource, diff, data, request_method, space_path.';

GRANT SELECT, INSERT ON headrace.audit_events TO headrace_app;
GRANT SELECT ON headrace.audit_logs TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.audit_events_seq TO headrace_app;

-- One trail of who did what. Events are only ever added; whole expired months leave it.

CREATE SEQUENCE headrace.audit_events_seq;

CREATE TABLE headrace.audit_events (
  id                 varchar(255) NOT NULL,
  "timestamp"        bigint NOT NULL,
  action             varchar(64) NOT NULL,
  resource_type      varchar(64) NOT NULL,
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
  seq                bigint NOT NULL DEFAULT nextval('headrace.audit_events_seq')
                     CONSTRAINT ck_audit_events_seq CHECK (seq > 0),
  PRIMARY KEY (id, created_at),
  -- One function in the place of nine CHECKs: PostgreSQL reads every CHECK of a table anew for every statement. It names the
  -- rule that is broken as a constraint of that name would. actor_type's stays, for it is 002's own, and short.
  CONSTRAINT ck_audit_events_rules CHECK (headrace.is_audit_event(
    id, "timestamp", created_at, action, resource_type, resource, "user", diff_object, client_ip
  ))
) PARTITION BY RANGE (created_at);
ALTER SEQUENCE headrace.audit_events_seq OWNED BY headrace.audit_events.seq;

CREATE INDEX idx_audit_events_timestamp ON headrace.audit_events ("timestamp" DESC);
CREATE INDEX idx_audit_events_client_ip ON headrace.audit_events (client_ip, "timestamp" DESC);
CREATE INDEX idx_audit_events_request_id ON headrace.audit_events (request_id);
CREATE INDEX idx_audit_events_composite ON headrace.audit_events (resource_type, action, "timestamp" DESC);
CREATE INDEX idx_audit_events_resource ON headrace.audit_events ((resource ->> 'identifier'), "timestamp" DESC);
CREATE INDEX idx_audit_events_user ON headrace.audit_events (("user" ->> 'uid'), "timestamp" DESC);
-- What the view audit_logs is searched by. The second also serves action alone (idx_audit_events_action).
CREATE INDEX idx_audit_logs_actor_created_at
  ON headrace.audit_events (actor_type, (("user" ->> 'uid')::varchar(64)), created_at DESC);
CREATE INDEX idx_audit_logs_action_created_at ON headrace.audit_events (action, created_at DESC);
CREATE INDEX idx_audit_logs_trace_id ON headrace.audit_events (trace_id);
-- A user's name is what people search for.
CREATE INDEX idx_audit_events_username ON headrace.audit_events (("user" ->> 'username'), "timestamp" DESC);
-- The trail of one type, newest first: idx_audit_events_composite has each action in order, not all of them together.
CREATE INDEX idx_audit_events_resource_type ON headrace.audit_events (resource_type, "timestamp" DESC);

COMMENT ON TABLE headrace.audit_events IS 'The audit trail: monthly partitions by created_at, never updated, deleted or truncated.';
COMMENT ON COLUMN headrace.audit_events.id IS 'TypeID aud_…; its millisecond is timestamp.';
COMMENT ON COLUMN headrace.audit_events."timestamp" IS 'Unix milliseconds.';
COMMENT ON COLUMN headrace.audit_events.resource IS '{"type": …, "identifier": …, "data": {name: text}}';
COMMENT ON COLUMN headrace.audit_events."user" IS '{"uid": …, "username": …, "type": "user" | "service" | "anonymous"}';
COMMENT ON COLUMN headrace.audit_events.diff_object IS '{"old_object": JSON as text, "new_object": JSON as text, "old_object_truncated": bool, "new_object_truncated": bool, "truncated_fields": [name]}; each object at most 64 KB.';
COMMENT ON COLUMN headrace.audit_events.client_ip IS 'An address as inet reads it: no port, no zone.';
COMMENT ON COLUMN headrace.audit_events.created_at IS 'The same instant as timestamp. No default: it comes with the id.';
COMMENT ON COLUMN headrace.audit_events.seq IS 'Grows with each insert, with gaps: the bigint id of audit_logs, and the order of sealing.';


-- Nothing is ever refused for want of a month: it lands here, and operations raises the alarm.
CREATE TABLE headrace.audit_events_default PARTITION OF headrace.audit_events DEFAULT;
SELECT headrace.adopt_partition('headrace.audit_events', 'headrace.audit_events_default');
SELECT headrace.create_month_partitions(
  'headrace.audit_events', (now() AT TIME ZONE 'UTC' - interval '1 month')::date, (now() AT TIME ZONE 'UTC' + interval '3 months')::date
);


-- Tamper evidence: events are sealed in batches, each batch has a Merkle root, and the roots are a chain.
CREATE TABLE headrace.audit_seals (
  number      bigint PRIMARY KEY
              CONSTRAINT ck_audit_seals_number CHECK (number > 0),
  month       date NOT NULL
              CONSTRAINT ck_audit_seals_month CHECK (extract(day FROM month) = 1),
  after_seq   bigint NOT NULL,
  last_seq    bigint NOT NULL,
  events      integer NOT NULL
              CONSTRAINT ck_audit_seals_events CHECK (events > 0),
  root        bytea NOT NULL
              CONSTRAINT ck_audit_seals_root CHECK (length(root) = 32),
  previous    bytea NOT NULL
              CONSTRAINT ck_audit_seals_previous CHECK (length(previous) = 32),
  chain       bytea NOT NULL
              CONSTRAINT ck_audit_seals_chain CHECK (length(chain) = 32),
  sealed_at   timestamptz NOT NULL,
  signed_by   bytea,
  signature   bytea,
  CONSTRAINT uk_audit_seals_month_last_seq UNIQUE (month, last_seq),
  CONSTRAINT ck_audit_seals_last_seq CHECK (last_seq > after_seq),
  CONSTRAINT ck_audit_seals_signature CHECK (
    (signed_by IS NULL) = (signature IS NULL)
    AND coalesce(length(signed_by), 32) = 32 AND coalesce(length(signature), 64) = 64
  )
);
CREATE INDEX idx_audit_seals_last_seq ON headrace.audit_seals (last_seq);

COMMENT ON TABLE headrace.audit_seals IS 'Merkle roots of the audit trail, chained: they stay when the events of a month are retired.';
COMMENT ON COLUMN headrace.audit_seals.month IS 'A seal holds events of one month, so that an archived month is verified by itself.';
COMMENT ON COLUMN headrace.audit_seals.after_seq IS 'It holds the events of its month with after_seq < seq <= last_seq.';
COMMENT ON COLUMN headrace.audit_seals.previous IS 'chain of the seal before; zeros in the first.';
COMMENT ON COLUMN headrace.audit_seals.chain IS 'SHA-256 over everything above and previous: what is signed.';
COMMENT ON COLUMN headrace.audit_seals.signed_by IS 'The Ed25519 public key.';

-- What a root was made of, to name the event that does not fit. Without these a change is still found, not named.
CREATE TABLE headrace.audit_leaves (
  seal    bigint PRIMARY KEY
          CONSTRAINT fk_audit_leaves_audit_seals_seal REFERENCES headrace.audit_seals (number),
  month   date NOT NULL,
  ids     bytea NOT NULL,
  leaves  bytea NOT NULL
);
CREATE INDEX idx_audit_leaves_month ON headrace.audit_leaves (month);
ALTER TABLE headrace.audit_leaves ALTER ids SET STORAGE EXTERNAL, ALTER leaves SET STORAGE EXTERNAL;  -- digests do not compress

COMMENT ON TABLE headrace.audit_leaves IS 'The events of each seal in their order: 16 bytes of id and 32 of SHA-256 each. Retired with their month.';


-- How far the import of another system's trail has come.
CREATE TABLE headrace.audit_imports (
  source        varchar(255) PRIMARY KEY,
  since         timestamptz NOT NULL,
  resume_at     timestamptz,
  resume_id     text,
  rows_read     bigint NOT NULL DEFAULT 0,
  rows_written  bigint NOT NULL DEFAULT 0,
  rows_present  bigint NOT NULL DEFAULT 0,
  skipped_json  jsonb NOT NULL DEFAULT '{}',
  finished_at   timestamptz,
  created_at    timestamptz NOT NULL DEFAULT now(),
  updated_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE headrace.audit_imports IS 'Imports of legacy audit_logs tables: where one that was broken off goes on.';
COMMENT ON COLUMN headrace.audit_imports.resume_id IS 'With resume_at: the last legacy row that was dealt with. Null at the beginning.';
COMMENT ON COLUMN headrace.audit_imports.skipped_json IS '{reason: rows}';

-- Not seq, which the database decides: it says where an event is looked for when the trail is verified, and whoever could
-- choose it could add to a month that is long sealed.
GRANT SELECT ON headrace.audit_events TO headrace_app;
GRANT INSERT (
  id, "timestamp", action, resource_type, resource, "user", space_path, diff_object, client_ip, user_agent,
  request_method, request_id, data, created_at, actor_type, trace_id
) ON headrace.audit_events TO headrace_app;
GRANT USAGE, SELECT ON SEQUENCE headrace.audit_events_seq TO headrace_app;
GRANT SELECT, INSERT ON headrace.audit_seals, headrace.audit_leaves TO headrace_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.audit_imports TO headrace_app;

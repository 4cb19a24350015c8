-- For reading, not for running: partitions, sequences and the schema itself are left out.
-- Rendered from the catalog of a migrated database by `make docs`; edit src/headrace/migrations instead:
-- NNNN_package.up.sql has the tables, functions/, triggers/ and views/ a file for each definition.

CREATE TABLE headrace.account_deletions (
  id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  requested_by varchar(64) NOT NULL,
  status varchar(16) NOT NULL DEFAULT 'WAITING',
  status_before varchar(16) NOT NULL,
  due_at timestamptz NOT NULL,
  steps_done text[] NOT NULL DEFAULT '{}'::text[],
  attempt integer NOT NULL DEFAULT 0,
  next_try_at timestamptz NOT NULL,
  obstacle varchar(255),
  started_at timestamptz,
  ended_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT account_deletions_pkey PRIMARY KEY (id),
  CONSTRAINT fk_account_deletions_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_account_deletions_attempt CHECK ((attempt >= 0)),
  CONSTRAINT ck_account_deletions_ended CHECK (((ended_at IS NOT NULL) = (status IN ('COMPLETED', 'CANCELED')))),
  CONSTRAINT ck_account_deletions_started CHECK (((started_at IS NOT NULL) = (status IN ('RUNNING', 'COMPLETED')))),
  CONSTRAINT ck_account_deletions_status CHECK ((status IN ('WAITING', 'RUNNING', 'COMPLETED', 'CANCELED'))),
  CONSTRAINT ck_account_deletions_status_before CHECK ((status_before IN ('ACTIVE', 'SUSPENDED')))
);
CREATE INDEX idx_account_deletions_created_at ON headrace.account_deletions USING btree (created_at DESC, id DESC);
CREATE INDEX idx_account_deletions_due ON headrace.account_deletions USING btree (next_try_at) WHERE (status IN ('WAITING', 'RUNNING'));
CREATE INDEX idx_account_deletions_status_created_at ON headrace.account_deletions USING btree (status, created_at DESC, id DESC);
CREATE INDEX idx_account_deletions_user_created_at ON headrace.account_deletions USING btree (user_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX uk_account_deletions_user ON headrace.account_deletions USING btree (user_id) WHERE (status <> 'CANCELED');
CREATE TRIGGER tr_account_deletions_status BEFORE UPDATE OF status ON headrace.account_deletions FOR EACH ROW WHEN ((NOT headrace.account_deletion_may_move(old.status, new.status))) EXECUTE FUNCTION headrace.refuse_state_move('status');
CREATE TRIGGER tr_account_deletions_touch BEFORE UPDATE ON headrace.account_deletions FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.account_deletions TO headrace_app;
COMMENT ON TABLE headrace.account_deletions IS 'Deletions of accounts, step by step; nothing personal is in here.';
COMMENT ON COLUMN headrace.account_deletions.requested_by IS 'The user themselves, an administrator, or the system for an operator. No foreign key: only a name for somebody.';
COMMENT ON COLUMN headrace.account_deletions.status_before IS 'What undoing gives back to the user.';
COMMENT ON COLUMN headrace.account_deletions.due_at IS 'The end of the grace period: until then it can be undone.';
COMMENT ON COLUMN headrace.account_deletions.steps_done IS 'Names of the steps that have nothing left to do.';
COMMENT ON COLUMN headrace.account_deletions.attempt IS 'Counts who took it on; the fence of everything they write.';
COMMENT ON COLUMN headrace.account_deletions.next_try_at IS 'Not before this time; while a process carries it out, its lease ends here.';
COMMENT ON COLUMN headrace.account_deletions.obstacle IS 'Why the last attempt did not come to the end.';

CREATE TABLE headrace.account_links (
  id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  purpose varchar(32) NOT NULL,
  token_hash bytea NOT NULL,
  email varchar(255) NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  CONSTRAINT account_links_pkey PRIMARY KEY (id),
  CONSTRAINT uk_account_links_token_hash UNIQUE (token_hash),
  CONSTRAINT fk_account_links_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id) ON DELETE CASCADE,
  CONSTRAINT ck_account_links_expires_at CHECK ((expires_at > created_at)),
  CONSTRAINT ck_account_links_purpose CHECK ((purpose IN ('PASSWORD_RESET', 'EMAIL_CHANGE'))),
  CONSTRAINT ck_account_links_token_hash CHECK ((octet_length(token_hash) = 32))
);
CREATE INDEX idx_account_links_created_at ON headrace.account_links USING btree (created_at);
CREATE INDEX idx_account_links_user_id_created_at ON headrace.account_links USING btree (user_id, created_at DESC);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.account_links TO headrace_app;
COMMENT ON TABLE headrace.account_links IS 'Links sent by e-mail, each for one use; the token itself is only in the e-mail. A used link is deleted.';
COMMENT ON COLUMN headrace.account_links.token_hash IS 'SHA-256 of the token.';
COMMENT ON COLUMN headrace.account_links.email IS 'Where it was sent; for EMAIL_CHANGE the address to be confirmed.';

CREATE TABLE headrace.api_keys (
  id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  name varchar(64) NOT NULL,
  key_hash bytea NOT NULL,
  key_hint varchar(16) NOT NULL,
  scopes text[] NOT NULL DEFAULT '{}'::text[],
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT api_keys_pkey PRIMARY KEY (id),
  CONSTRAINT uk_api_keys_key_hash UNIQUE (key_hash),
  CONSTRAINT fk_api_keys_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id) ON DELETE CASCADE,
  CONSTRAINT ck_api_keys_key_hash CHECK ((octet_length(key_hash) = 32)),
  CONSTRAINT ck_api_keys_name CHECK ((btrim(name) <> '')),
  CONSTRAINT ck_api_keys_scopes CHECK ((array_position(scopes, NULL::text) IS NULL))
) WITH (fillfactor=85);
CREATE INDEX idx_api_keys_user_id_created_at ON headrace.api_keys USING btree (user_id, created_at DESC);
CREATE UNIQUE INDEX uk_api_keys_user_name_active ON headrace.api_keys USING btree (user_id, name) WHERE (revoked_at IS NULL);
CREATE TRIGGER tr_api_keys_touch BEFORE UPDATE ON headrace.api_keys FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.api_keys TO headrace_app;
COMMENT ON TABLE headrace.api_keys IS 'Programs'' keys. A key is shown once and kept only as its hash.';
COMMENT ON COLUMN headrace.api_keys.key_hash IS 'SHA-256 of the key.';
COMMENT ON COLUMN headrace.api_keys.key_hint IS 'The last characters, so that a person can tell keys apart.';

CREATE TABLE headrace.archives (
  id varchar(64) NOT NULL,
  table_name varchar(63) NOT NULL,
  period date NOT NULL,
  state varchar(16) NOT NULL DEFAULT 'DETACHED',
  location text,
  row_count bigint,
  min_id text,
  max_id text,
  min_at timestamptz,
  max_at timestamptz,
  size_bytes bigint,
  sha256 character(64),
  detached_at timestamptz NOT NULL DEFAULT now(),
  archived_at timestamptz,
  verified_at timestamptz,
  dropped_at timestamptz,
  restored_as varchar(63),
  CONSTRAINT archives_pkey PRIMARY KEY (id),
  CONSTRAINT uk_archives_table_period UNIQUE (table_name, period),
  CONSTRAINT ck_archives_archived CHECK (((state = 'DETACHED') OR ((num_nulls(location, row_count, size_bytes, sha256, archived_at) = 0) AND ((row_count = 0) OR (num_nulls(min_id, max_id, min_at, max_at) = 0))))),
  CONSTRAINT ck_archives_dropped CHECK ((((dropped_at IS NOT NULL) = (state = 'DROPPED')) AND ((state <> 'DROPPED') OR COALESCE((verified_at >= archived_at), false)))),
  CONSTRAINT ck_archives_period CHECK ((EXTRACT(day FROM period) = (1)::numeric)),
  CONSTRAINT ck_archives_row_count CHECK ((row_count >= 0)),
  CONSTRAINT ck_archives_sha256 CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT ck_archives_size_bytes CHECK ((size_bytes > 0)),
  CONSTRAINT ck_archives_state CHECK ((state IN ('DETACHED', 'ARCHIVED', 'DROPPED')))
);
CREATE INDEX idx_archives_detached_at ON headrace.archives USING btree (detached_at DESC, id DESC);
CREATE UNIQUE INDEX uk_archives_location ON headrace.archives USING btree (location);
CREATE TRIGGER tr_archives_state BEFORE UPDATE OF state ON headrace.archives FOR EACH ROW WHEN ((NOT headrace.archive_may_move(old.state, new.state))) EXECUTE FUNCTION headrace.refuse_state_move('state');
GRANT SELECT ON headrace.archives TO headrace_app;
COMMENT ON TABLE headrace.archives IS 'Months that have left, or are leaving, their table: the summary that stays online.';
COMMENT ON COLUMN headrace.archives.state IS 'DETACHED: beside its table, under the partition''s name. ARCHIVED: also in the archive. DROPPED: only there.';
COMMENT ON COLUMN headrace.archives.location IS 'The object''s name below HEADRACE_ARCHIVE_URL.';
COMMENT ON COLUMN headrace.archives.min_at IS 'Of created_at, as is max_at.';
COMMENT ON COLUMN headrace.archives.sha256 IS 'Of the Parquet file.';
COMMENT ON COLUMN headrace.archives.verified_at IS 'When the file was last read back and found right.';
COMMENT ON COLUMN headrace.archives.restored_as IS 'The table that its rows were put back into, while that is there.';

CREATE TABLE headrace.assets (
  id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  media_type varchar(16) NOT NULL,
  origin_name varchar(255) NOT NULL,
  mime_type varchar(128) NOT NULL,
  size_bytes bigint NOT NULL,
  sha256 character(64),
  storage_bucket varchar(63) NOT NULL DEFAULT 'media',
  storage_key text NOT NULL,
  status varchar(16) NOT NULL DEFAULT 'UPLOADED',
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  meta_json jsonb,
  expire_at timestamptz,
  preview_key text,
  purged_at timestamptz,
  checked_at timestamptz,
  CONSTRAINT assets_pkey PRIMARY KEY (id),
  CONSTRAINT uk_assets_storage_key UNIQUE (storage_key),
  CONSTRAINT fk_assets_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_assets_deleted CHECK (((deleted_at IS NOT NULL) = (status = 'DELETED'))),
  CONSTRAINT ck_assets_media_type CHECK ((media_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT', 'OTHER'))),
  CONSTRAINT ck_assets_purged CHECK (((purged_at IS NULL) OR (status = 'DELETED'))),
  CONSTRAINT ck_assets_sha256 CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT ck_assets_size_bytes CHECK ((size_bytes > 0)),
  CONSTRAINT ck_assets_status CHECK ((status IN ('UPLOADED', 'DELETED')))
);
CREATE INDEX idx_assets_all_listed ON headrace.assets USING btree (created_at DESC, id DESC) WHERE (status = 'UPLOADED');
CREATE INDEX idx_assets_checked_at ON headrace.assets USING btree (checked_at NULLS FIRST) WHERE (status = 'UPLOADED');
CREATE INDEX idx_assets_expire_at ON headrace.assets USING btree (expire_at) WHERE (status = 'UPLOADED');
CREATE INDEX idx_assets_listed ON headrace.assets USING btree (user_id, created_at DESC, id DESC) WHERE (status = 'UPLOADED');
CREATE INDEX idx_assets_media_type_listed ON headrace.assets USING btree (media_type, created_at DESC, id DESC) WHERE (status = 'UPLOADED');
CREATE INDEX idx_assets_object ON headrace.assets USING btree (split_part(storage_key, '#', 1));
CREATE INDEX idx_assets_purged ON headrace.assets USING btree (deleted_at) WHERE ((status = 'DELETED') AND (purged_at IS NOT NULL));
CREATE INDEX idx_assets_sha256 ON headrace.assets USING btree (sha256);
CREATE INDEX idx_assets_to_purge ON headrace.assets USING btree (deleted_at) WHERE ((status = 'DELETED') AND (purged_at IS NULL));
CREATE INDEX idx_assets_user_created_at ON headrace.assets USING btree (user_id, created_at DESC);
CREATE INDEX idx_assets_user_sha256 ON headrace.assets USING btree (user_id, sha256) WHERE (status = 'UPLOADED');
CREATE TRIGGER tr_assets_status BEFORE UPDATE OF status ON headrace.assets FOR EACH ROW WHEN ((NOT headrace.asset_may_move(old.status, new.status))) EXECUTE FUNCTION headrace.refuse_state_move('status');
CREATE TRIGGER tr_assets_touch BEFORE UPDATE ON headrace.assets FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.assets TO headrace_app;
COMMENT ON TABLE headrace.assets IS 'Uploaded files. DELETED means that nobody reaches it any more; the bytes go soon after (purged_at), the row stays.';
COMMENT ON COLUMN headrace.assets.mime_type IS 'As recognised from the content, not as claimed.';
COMMENT ON COLUMN headrace.assets.sha256 IS 'Lower-case hex.';
COMMENT ON COLUMN headrace.assets.storage_key IS 'Where the bytes lie in the bucket. Equal files of one user share their bytes: then # and the id of the row follow, which are no part of the object''s name.';
COMMENT ON COLUMN headrace.assets.meta_json IS 'What the inspection found: format, pixels, pages, frames, duration, orientation, encryption, signatures.';
COMMENT ON COLUMN headrace.assets.expire_at IS 'When it is deleted by itself; null: never.';
COMMENT ON COLUMN headrace.assets.preview_key IS 'Where its preview lies, in the bucket preview; null until somebody asked for it.';
COMMENT ON COLUMN headrace.assets.purged_at IS 'When this row stopped to hold on to bytes: they are gone, or another row''s.';
COMMENT ON COLUMN headrace.assets.checked_at IS 'When the sweep last saw the bytes.';

CREATE TABLE headrace.audit_events (
  id varchar(255) NOT NULL,
  timestamp bigint NOT NULL,
  action varchar(64) NOT NULL,
  resource_type varchar(64) NOT NULL,
  resource jsonb NOT NULL,
  user jsonb NOT NULL,
  space_path varchar(512),
  diff_object jsonb,
  client_ip varchar(45),
  user_agent text,
  request_method varchar(16),
  request_id varchar(128),
  data jsonb,
  created_at timestamptz NOT NULL,
  actor_type varchar(16) NOT NULL,
  trace_id varchar(64),
  seq bigint NOT NULL DEFAULT nextval('headrace.audit_events_seq'::regclass),
  CONSTRAINT audit_events_pkey PRIMARY KEY (id, created_at),
  CONSTRAINT ck_audit_events_actor_type CHECK ((actor_type IN ('USER', 'ADMIN', 'SYSTEM'))),
  CONSTRAINT ck_audit_events_rules CHECK (headrace.is_audit_event(id, "timestamp", created_at, action, resource_type, resource, "user", diff_object, client_ip)),
  CONSTRAINT ck_audit_events_seq CHECK ((seq > 0))
) PARTITION BY RANGE (created_at);
CREATE INDEX idx_audit_events_client_ip ON ONLY headrace.audit_events USING btree (client_ip, "timestamp" DESC);
CREATE INDEX idx_audit_events_composite ON ONLY headrace.audit_events USING btree (resource_type, action, "timestamp" DESC);
CREATE INDEX idx_audit_events_request_id ON ONLY headrace.audit_events USING btree (request_id);
CREATE INDEX idx_audit_events_resource ON ONLY headrace.audit_events USING btree (((resource ->> 'identifier')), "timestamp" DESC);
CREATE INDEX idx_audit_events_resource_type ON ONLY headrace.audit_events USING btree (resource_type, "timestamp" DESC);
CREATE INDEX idx_audit_events_timestamp ON ONLY headrace.audit_events USING btree ("timestamp" DESC);
CREATE INDEX idx_audit_events_user ON ONLY headrace.audit_events USING btree ((("user" ->> 'uid')), "timestamp" DESC);
CREATE INDEX idx_audit_events_username ON ONLY headrace.audit_events USING btree ((("user" ->> 'username')), "timestamp" DESC);
CREATE INDEX idx_audit_logs_action_created_at ON ONLY headrace.audit_events USING btree (action, created_at DESC);
CREATE INDEX idx_audit_logs_actor_created_at ON ONLY headrace.audit_events USING btree (actor_type, ((("user" ->> 'uid'))::varchar(64)), created_at DESC);
CREATE INDEX idx_audit_logs_trace_id ON ONLY headrace.audit_events USING btree (trace_id);
CREATE TRIGGER tr_audit_events_refuse_rewriting BEFORE DELETE OR UPDATE ON headrace.audit_events FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE TRIGGER tr_audit_events_refuse_truncate BEFORE TRUNCATE ON headrace.audit_events FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE TRIGGER tr_audit_events_time BEFORE INSERT ON headrace.audit_events FOR EACH ROW WHEN (((new.created_at < (clock_timestamp() - '00:01:00'::interval)) OR (new.created_at > (clock_timestamp() + '00:01:00'::interval)))) EXECUTE FUNCTION headrace.refuse_other_time();
GRANT SELECT, INSERT (id, timestamp, action, resource_type, resource, user, space_path, diff_object, client_ip, user_agent, request_method, request_id, data, created_at, actor_type, trace_id) ON headrace.audit_events TO headrace_app;
COMMENT ON TABLE headrace.audit_events IS 'The audit trail: monthly partitions by created_at, never updated, deleted or truncated.';
COMMENT ON COLUMN headrace.audit_events.id IS 'TypeID aud_…; its millisecond is timestamp.';
COMMENT ON COLUMN headrace.audit_events.timestamp IS 'Unix milliseconds.';
COMMENT ON COLUMN headrace.audit_events.resource IS '{"type": …, "identifier": …, "data": {name: text}}';
COMMENT ON COLUMN headrace.audit_events.user IS '{"uid": …, "username": …, "type": "user" | "service" | "anonymous"}';
COMMENT ON COLUMN headrace.audit_events.diff_object IS '{"old_object": JSON as text, "new_object": JSON as text, "old_object_truncated": bool, "new_object_truncated": bool, "truncated_fields": [name]}; each object at most 64 KB.';
COMMENT ON COLUMN headrace.audit_events.client_ip IS 'An address as inet reads it: no port, no zone.';
COMMENT ON COLUMN headrace.audit_events.created_at IS 'The same instant as timestamp. No default: it comes with the id.';
COMMENT ON COLUMN headrace.audit_events.seq IS 'Grows with each insert, with gaps: the bigint id of audit_logs, and the order of sealing.';

CREATE TABLE headrace.audit_imports (
  source varchar(255) NOT NULL,
  since timestamptz NOT NULL,
  resume_at timestamptz,
  resume_id text,
  rows_read bigint NOT NULL DEFAULT 0,
  rows_written bigint NOT NULL DEFAULT 0,
  rows_present bigint NOT NULL DEFAULT 0,
  skipped_json jsonb NOT NULL DEFAULT '{}'::jsonb,
  finished_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT audit_imports_pkey PRIMARY KEY (source)
);
CREATE TRIGGER tr_audit_imports_touch BEFORE UPDATE ON headrace.audit_imports FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.audit_imports TO headrace_app;
COMMENT ON TABLE headrace.audit_imports IS 'Imports of legacy audit_logs tables: where one that was broken off goes on.';
COMMENT ON COLUMN headrace.audit_imports.resume_id IS 'With resume_at: the last legacy row that was dealt with. Null at the beginning.';
COMMENT ON COLUMN headrace.audit_imports.skipped_json IS '{reason: rows}';

CREATE TABLE headrace.audit_leaves (
  seal bigint NOT NULL,
  month date NOT NULL,
  ids bytea NOT NULL,
  leaves bytea NOT NULL,
  CONSTRAINT audit_leaves_pkey PRIMARY KEY (seal),
  CONSTRAINT fk_audit_leaves_audit_seals_seal FOREIGN KEY (seal) REFERENCES headrace.audit_seals(number)
);
CREATE INDEX idx_audit_leaves_month ON headrace.audit_leaves USING btree (month);
CREATE TRIGGER tr_audit_leaves_refuse_rewriting BEFORE UPDATE ON headrace.audit_leaves FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE TRIGGER tr_audit_leaves_refuse_truncate BEFORE TRUNCATE ON headrace.audit_leaves FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();
GRANT SELECT, INSERT ON headrace.audit_leaves TO headrace_app;
COMMENT ON TABLE headrace.audit_leaves IS 'The events of each seal in their order: 16 bytes of id and 32 of SHA-256 each. Retired with their month.';

CREATE TABLE headrace.audit_seals (
  number bigint NOT NULL,
  month date NOT NULL,
  after_seq bigint NOT NULL,
  last_seq bigint NOT NULL,
  events integer NOT NULL,
  root bytea NOT NULL,
  previous bytea NOT NULL,
  chain bytea NOT NULL,
  sealed_at timestamptz NOT NULL,
  signed_by bytea,
  signature bytea,
  CONSTRAINT audit_seals_pkey PRIMARY KEY (number),
  CONSTRAINT uk_audit_seals_month_last_seq UNIQUE (month, last_seq),
  CONSTRAINT ck_audit_seals_chain CHECK ((length(chain) = 32)),
  CONSTRAINT ck_audit_seals_events CHECK ((events > 0)),
  CONSTRAINT ck_audit_seals_last_seq CHECK ((last_seq > after_seq)),
  CONSTRAINT ck_audit_seals_month CHECK ((EXTRACT(day FROM month) = (1)::numeric)),
  CONSTRAINT ck_audit_seals_number CHECK ((number > 0)),
  CONSTRAINT ck_audit_seals_previous CHECK ((length(previous) = 32)),
  CONSTRAINT ck_audit_seals_root CHECK ((length(root) = 32)),
  CONSTRAINT ck_audit_seals_signature CHECK ((((signed_by IS NULL) = (signature IS NULL)) AND (COALESCE(length(signed_by), 32) = 32) AND (COALESCE(length(signature), 64) = 64)))
);
CREATE INDEX idx_audit_seals_last_seq ON headrace.audit_seals USING btree (last_seq);
CREATE TRIGGER tr_audit_seals_follow BEFORE INSERT ON headrace.audit_seals FOR EACH ROW EXECUTE FUNCTION headrace.refuse_loose_seal();
CREATE TRIGGER tr_audit_seals_refuse_rewriting BEFORE DELETE OR UPDATE ON headrace.audit_seals FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE TRIGGER tr_audit_seals_refuse_truncate BEFORE TRUNCATE ON headrace.audit_seals FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();
GRANT SELECT, INSERT ON headrace.audit_seals TO headrace_app;
COMMENT ON TABLE headrace.audit_seals IS 'Merkle roots of the audit trail, chained: they stay when the events of a month are retired.';
COMMENT ON COLUMN headrace.audit_seals.month IS 'A seal holds events of one month, so that an archived month is verified by itself.';
COMMENT ON COLUMN headrace.audit_seals.after_seq IS 'It holds the events of its month with after_seq < seq <= last_seq.';
COMMENT ON COLUMN headrace.audit_seals.previous IS 'chain of the seal before; zeros in the first.';
COMMENT ON COLUMN headrace.audit_seals.chain IS 'SHA-256 over everything above and previous: what is signed.';
COMMENT ON COLUMN headrace.audit_seals.signed_by IS 'The Ed25519 public key.';

CREATE TABLE headrace.audit_verified_head (
  only_row boolean NOT NULL DEFAULT true,
  head text NOT NULL,
  mac bytea NOT NULL,
  verified_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT audit_verified_head_pkey PRIMARY KEY (only_row),
  CONSTRAINT ck_audit_verified_head_only_row CHECK (only_row)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.audit_verified_head TO headrace_app;
COMMENT ON TABLE headrace.audit_verified_head IS 'The last seal up to which the audit trail was verified, as JSON with an HMAC under a key of the deployment.';

CREATE TABLE headrace.broker_messages (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  event_position bigint NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  leased_until timestamptz,
  given_up_at timestamptz,
  CONSTRAINT broker_messages_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX idx_broker_messages_leased ON headrace.broker_messages USING btree (leased_until) WHERE (leased_until IS NOT NULL);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.broker_messages TO headrace_app;
COMMENT ON TABLE headrace.broker_messages IS 'Events that the broker has not confirmed yet, in the order in which they are published.';
COMMENT ON COLUMN headrace.broker_messages.event_position IS 'outbox_events.id. No foreign key: each event would be locked for it.';
COMMENT ON COLUMN headrace.broker_messages.leased_until IS 'Until then one sender has it; that instant is its fence.';
COMMENT ON COLUMN headrace.broker_messages.given_up_at IS 'When the broker had refused it too often.';

CREATE TABLE headrace.bulk_actions (
  task_id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  as_admin boolean NOT NULL,
  scopes text[],
  resource varchar(16) NOT NULL,
  action varchar(16) NOT NULL,
  filter jsonb NOT NULL,
  expected bigint NOT NULL,
  matched bigint NOT NULL,
  done bigint NOT NULL DEFAULT 0,
  skipped bigint NOT NULL DEFAULT 0,
  refused bigint NOT NULL DEFAULT 0,
  refusals jsonb NOT NULL DEFAULT '[]'::jsonb,
  position_at timestamptz,
  position_id varchar(255),
  request_id varchar(128),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  CONSTRAINT bulk_actions_pkey PRIMARY KEY (task_id),
  CONSTRAINT fk_bulk_actions_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_bulk_actions_action CHECK ((((action IN ('cancel', 'retry', 'delete')) AND (resource = 'tasks')) OR ((action IN ('enable', 'disable')) AND (resource = 'schedules')))),
  CONSTRAINT ck_bulk_actions_counts CHECK ((LEAST(done, skipped, refused) >= 0)),
  CONSTRAINT ck_bulk_actions_expected CHECK ((expected >= 0)),
  CONSTRAINT ck_bulk_actions_matched CHECK ((matched >= 0)),
  CONSTRAINT ck_bulk_actions_position CHECK (((position_at IS NULL) = (position_id IS NULL)))
);
CREATE INDEX idx_bulk_actions_created_at ON headrace.bulk_actions USING btree (created_at DESC, task_id DESC);
CREATE INDEX idx_bulk_actions_user_created_at ON headrace.bulk_actions USING btree (user_id, created_at DESC, task_id DESC);
CREATE TRIGGER tr_bulk_actions_touch BEFORE UPDATE ON headrace.bulk_actions FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.bulk_actions TO headrace_app;
COMMENT ON TABLE headrace.bulk_actions IS 'Actions on all rows that a filter matches, each carried out by a task: what was asked, and how far it is.';
COMMENT ON COLUMN headrace.bulk_actions.task_id IS 'The task that carries it out. No foreign key: tasks go by the million, and each would look here.';
COMMENT ON COLUMN headrace.bulk_actions.as_admin IS 'Whether whoever asked acted as an administrator; looked at again when it runs.';
COMMENT ON COLUMN headrace.bulk_actions.scopes IS 'Of the API key that asked; null for a session, which is not narrowed.';
COMMENT ON COLUMN headrace.bulk_actions.expected IS 'How many the person was shown before.';
COMMENT ON COLUMN headrace.bulk_actions.matched IS 'How many there were when it was asked for, up to a bound.';
COMMENT ON COLUMN headrace.bulk_actions.skipped IS 'That were as they should be already, or had moved on.';
COMMENT ON COLUMN headrace.bulk_actions.refusals IS 'The first of those that were refused, and why.';
COMMENT ON COLUMN headrace.bulk_actions.position_at IS 'Up to where it has come, newest first; written with what was done.';

CREATE TABLE headrace.entitlements (
  id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  plan_id varchar(64) NOT NULL,
  subscription_id varchar(64),
  quota_total integer NOT NULL,
  quota_left integer NOT NULL,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  status varchar(16) NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  features_json jsonb,
  alerted_percent smallint,
  CONSTRAINT entitlements_pkey PRIMARY KEY (id),
  CONSTRAINT fk_entitlements_plans_plan_id FOREIGN KEY (plan_id) REFERENCES headrace.plans(id),
  CONSTRAINT fk_entitlements_subscriptions_subscription_id FOREIGN KEY (subscription_id) REFERENCES headrace.subscriptions(id),
  CONSTRAINT fk_entitlements_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_entitlements_period CHECK ((period_end > period_start)),
  CONSTRAINT ck_entitlements_quota CHECK ((quota_left <= quota_total)),
  CONSTRAINT ck_entitlements_quota_left CHECK ((quota_left >= 0)),
  CONSTRAINT ck_entitlements_quota_total CHECK ((quota_total >= 0)),
  CONSTRAINT ck_entitlements_status CHECK ((status IN ('ACTIVE', 'EXPIRED', 'SUSPENDED')))
) WITH (fillfactor=70);
CREATE INDEX idx_entitlements_period_end ON headrace.entitlements USING btree (period_end) WHERE (status = 'ACTIVE');
CREATE INDEX idx_entitlements_user_status_period_end ON headrace.entitlements USING btree (user_id, status, period_end DESC);
CREATE UNIQUE INDEX uk_entitlements_subscription_start ON headrace.entitlements USING btree (subscription_id, period_start) WHERE ((subscription_id IS NOT NULL) AND (status <> 'SUSPENDED'));
CREATE UNIQUE INDEX uk_entitlements_user_plan_period ON headrace.entitlements USING btree (user_id, plan_id, period_start) WHERE (subscription_id IS NULL);
CREATE TRIGGER tr_entitlements_touch BEFORE UPDATE ON headrace.entitlements FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.entitlements TO headrace_app;
COMMENT ON TABLE headrace.entitlements IS 'Units that a user may use in a period. total = left + held + committed, by the ledger.';
COMMENT ON COLUMN headrace.entitlements.features_json IS 'The plan''s features when it was granted: changing a plan changes nothing that was granted.';
COMMENT ON COLUMN headrace.entitlements.alerted_percent IS 'The highest share of the quota, in percent, of which the user was notified.';

CREATE TABLE headrace.event_interests (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  consumer varchar(64) NOT NULL,
  key varchar(64) NOT NULL DEFAULT '',
  pattern varchar(128) NOT NULL,
  user_id varchar(64),
  task_type varchar(255),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT event_interests_pkey PRIMARY KEY (id),
  CONSTRAINT uk_event_interests UNIQUE NULLS NOT DISTINCT (consumer, key, pattern, user_id, task_type),
  CONSTRAINT ck_event_interests_consumer CHECK ((consumer <> '')),
  CONSTRAINT ck_event_interests_pattern CHECK ((pattern ~ '^([a-z][a-z0-9_]*\.)*([a-z][a-z0-9_]*|\*)$'))
);
CREATE INDEX idx_event_interests_pattern_user ON headrace.event_interests USING btree (pattern, user_id);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.event_interests TO headrace_app;
COMMENT ON TABLE headrace.event_interests IS 'Which events are written to the outbox, and for whom. One that nobody wants is not.';
COMMENT ON COLUMN headrace.event_interests.consumer IS 'Who wants them: the name of a consumer of the relay.';
COMMENT ON COLUMN headrace.event_interests.key IS 'Which part of the consumer: an endpoint, say. Empty: the consumer itself.';
COMMENT ON COLUMN headrace.event_interests.pattern IS 'A type of events (task.created), all that begin alike (task.*), or all (*).';
COMMENT ON COLUMN headrace.event_interests.user_id IS 'Only events of this user; null: of everybody.';
COMMENT ON COLUMN headrace.event_interests.task_type IS 'Only events of tasks of this type; null: of every type, and of what is no task.';

CREATE TABLE headrace.idempotency_keys (
  id bigint NOT NULL DEFAULT nextval('headrace.idempotency_keys_id_seq'::regclass),
  scope varchar(64) NOT NULL,
  user_id varchar(64),
  idempotency_key varchar(128) NOT NULL,
  request_hash character(64) NOT NULL,
  response_json jsonb,
  response_headers jsonb,
  http_status integer NOT NULL,
  result_task_id varchar(64),
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (id),
  CONSTRAINT uk_idempotency_scope_user_key UNIQUE NULLS NOT DISTINCT (scope, user_id, idempotency_key),
  CONSTRAINT fk_idempotency_keys_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_idempotency_keys_http_status CHECK (((http_status >= 100) AND (http_status <= 599))),
  CONSTRAINT ck_idempotency_keys_idempotency_key CHECK ((idempotency_key <> '')),
  CONSTRAINT ck_idempotency_keys_request_hash CHECK ((request_hash ~ '^[0-9a-f]{64}$'))
);
CREATE INDEX idx_idempotency_keys_expires_at ON headrace.idempotency_keys USING btree (expires_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.idempotency_keys TO headrace_app;
COMMENT ON TABLE headrace.idempotency_keys IS 'Requests that happened, and happen only once: the first one''s answer is every later one''s. Written in the transaction of what was done; while that runs, an advisory lock stands for the row.';
COMMENT ON COLUMN headrace.idempotency_keys.request_hash IS 'HMAC-SHA-256 of method, path and body, lower-case hex: the same key with another request is refused. Keyed, because a body may hold a password.';
COMMENT ON COLUMN headrace.idempotency_keys.response_json IS 'The body. Where it holds a secret: {"sealed": …}, encrypted together with the headers.';
COMMENT ON COLUMN headrace.idempotency_keys.result_task_id IS 'The task that came of it. No foreign key: a key lives a day, a task longer; nothing is gained by checking each on the hot path.';

CREATE TABLE headrace.ledger_verification (
  id smallint NOT NULL DEFAULT 1,
  started_at timestamptz NOT NULL,
  finished_at timestamptz NOT NULL,
  entries bigint NOT NULL,
  entitlements bigint NOT NULL,
  archived_months integer NOT NULL,
  fault_count bigint NOT NULL,
  faults jsonb NOT NULL,
  CONSTRAINT ledger_verification_pkey PRIMARY KEY (id),
  CONSTRAINT ck_ledger_verification_fault_count CHECK ((fault_count >= 0)),
  CONSTRAINT ck_ledger_verification_id CHECK ((id = 1))
);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.ledger_verification TO headrace_app;
COMMENT ON TABLE headrace.ledger_verification IS 'What the last look through the ledger found; one row.';
COMMENT ON COLUMN headrace.ledger_verification.faults IS 'The first hundred.';

CREATE TABLE headrace.lock_fences (
  lock_key varchar(255) NOT NULL,
  fence bigint NOT NULL,
  user_id varchar(64) NOT NULL DEFAULT 'u_00000000000000000000000000',
  CONSTRAINT lock_fences_pkey PRIMARY KEY (user_id, lock_key),
  CONSTRAINT fk_lock_fences_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_lock_fences_fence CHECK ((fence > 0))
) WITH (fillfactor=70);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.lock_fences TO headrace_app;
COMMENT ON TABLE headrace.lock_fences IS 'The last fencing number of each lock key.';

CREATE TABLE headrace.login_throttles (
  subject varchar(320) NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  first_failed_at timestamptz NOT NULL DEFAULT now(),
  last_failed_at timestamptz NOT NULL DEFAULT now(),
  blocked_until timestamptz,
  CONSTRAINT login_throttles_pkey PRIMARY KEY (subject),
  CONSTRAINT ck_login_throttles_failures CHECK ((failures >= 0)),
  CONSTRAINT ck_login_throttles_order CHECK ((last_failed_at >= first_failed_at))
) WITH (fillfactor=70);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.login_throttles TO headrace_app;
COMMENT ON TABLE headrace.login_throttles IS 'Failed logins by account and by address.';
COMMENT ON COLUMN headrace.login_throttles.subject IS 'address:<IPv4 address or IPv6 /64>; account:<lower-case name>; known:<address>:<name> for an account where its owner logged in lately; change:<user> for changes of a password.';

CREATE TABLE headrace.notifications (
  id bigint NOT NULL DEFAULT nextval('headrace.notifications_id_seq'::regclass),
  user_id varchar(64) NOT NULL,
  type varchar(32) NOT NULL,
  title varchar(128) NOT NULL,
  body text NOT NULL,
  payload_json jsonb,
  event_id varchar(64),
  is_read boolean NOT NULL DEFAULT false,
  read_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT notifications_pkey PRIMARY KEY (id),
  CONSTRAINT fk_notifications_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_notifications_read_at CHECK ((is_read = (read_at IS NOT NULL))),
  CONSTRAINT ck_notifications_type CHECK ((type IN ('TASK_SUCCEEDED', 'TASK_FAILED', 'SUBSCRIPTION_ACTIVATED', 'SUBSCRIPTION_EXPIRING', 'QUOTA_REACHED', 'ACCOUNT_DELETE_COMPLETED')))
);
CREATE INDEX idx_notifications_user_id ON headrace.notifications USING btree (user_id, id DESC);
CREATE INDEX idx_notifications_user_read_created_at ON headrace.notifications USING btree (user_id, is_read, created_at DESC);
CREATE UNIQUE INDEX uk_notifications_event ON headrace.notifications USING btree (event_id, user_id, type) WHERE (event_id IS NOT NULL);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.notifications TO headrace_app;
COMMENT ON TABLE headrace.notifications IS 'Messages to users, read or not.';
COMMENT ON COLUMN headrace.notifications.event_id IS 'The outbox event it came of. No foreign key: published events are cleared away sooner.';

CREATE TABLE headrace.outbox_events (
  id bigint NOT NULL DEFAULT nextval('headrace.outbox_events_id_seq'::regclass),
  event_id varchar(64) NOT NULL,
  event_type varchar(128) NOT NULL,
  event_version integer NOT NULL,
  aggregate_type varchar(64) NOT NULL,
  aggregate_id varchar(64) NOT NULL,
  trace_id varchar(64),
  payload_json jsonb NOT NULL,
  headers_json jsonb,
  status varchar(16) NOT NULL,
  retry_count integer NOT NULL DEFAULT 0,
  next_retry_at timestamptz DEFAULT now(),
  published_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  user_id varchar(64),
  CONSTRAINT outbox_events_pkey PRIMARY KEY (id),
  CONSTRAINT uk_outbox_events_event_id UNIQUE (event_id),
  CONSTRAINT ck_outbox_events_event_version CHECK ((event_version > 0)),
  CONSTRAINT ck_outbox_events_published_at CHECK (((published_at IS NOT NULL) = (status = 'PUBLISHED'))),
  CONSTRAINT ck_outbox_events_retry_count CHECK ((retry_count >= 0)),
  CONSTRAINT ck_outbox_events_status CHECK ((status IN ('PENDING', 'PUBLISHED', 'FAILED', 'DEAD')))
) WITH (autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX idx_outbox_events_open ON headrace.outbox_events USING btree (aggregate_type, aggregate_id, id) WHERE (status IN ('PENDING', 'FAILED'));
CREATE INDEX idx_outbox_events_status_next_retry_at ON headrace.outbox_events USING btree (status, next_retry_at);
CREATE TRIGGER tr_outbox_events_status BEFORE UPDATE OF status ON headrace.outbox_events FOR EACH ROW WHEN ((NOT headrace.outbox_event_may_move(old.status, new.status))) EXECUTE FUNCTION headrace.refuse_state_move('status');
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.outbox_events TO headrace_app;
COMMENT ON TABLE headrace.outbox_events IS 'Events to publish, at least once and in order for one aggregate.';
COMMENT ON COLUMN headrace.outbox_events.event_id IS 'TypeID evt_…: the id receivers drop repeats by.';
COMMENT ON COLUMN headrace.outbox_events.headers_json IS '{trace_id, request_id}, where known: sent on beside the payload.';
COMMENT ON COLUMN headrace.outbox_events.next_retry_at IS 'Not before this time; while a relay has the event, its lease ends here.';
COMMENT ON COLUMN headrace.outbox_events.user_id IS 'Whose event it is; null: nobody''s.';

CREATE TABLE headrace.payment_orders (
  id varchar(32) NOT NULL,
  user_id varchar(64) NOT NULL,
  plan_id varchar(64) NOT NULL,
  subscription_id varchar(64) NOT NULL,
  entitlement_id varchar(64),
  kind varchar(16) NOT NULL,
  method varchar(16) NOT NULL,
  status varchar(16) NOT NULL,
  description varchar(127) NOT NULL,
  amount_cents integer NOT NULL,
  currency varchar(3) NOT NULL,
  units integer NOT NULL,
  features_json jsonb NOT NULL,
  code_url varchar(512),
  prepay_id varchar(128),
  transaction_id varchar(64),
  refund_id varchar(64),
  refund_reason varchar(80),
  problem varchar(64),
  expires_at timestamptz NOT NULL,
  checked_at timestamptz,
  paid_at timestamptz,
  refunded_at timestamptz,
  version integer NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT payment_orders_pkey PRIMARY KEY (id),
  CONSTRAINT fk_payment_orders_entitlements_entitlement_id FOREIGN KEY (entitlement_id) REFERENCES headrace.entitlements(id),
  CONSTRAINT fk_payment_orders_plans_plan_id FOREIGN KEY (plan_id) REFERENCES headrace.plans(id),
  CONSTRAINT fk_payment_orders_subscriptions_subscription_id FOREIGN KEY (subscription_id) REFERENCES headrace.subscriptions(id),
  CONSTRAINT fk_payment_orders_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_payment_orders_amount_cents CHECK ((amount_cents > 0)),
  CONSTRAINT ck_payment_orders_kind CHECK ((kind IN ('PURCHASE', 'RENEWAL'))),
  CONSTRAINT ck_payment_orders_method CHECK ((method IN ('NATIVE', 'JSAPI'))),
  CONSTRAINT ck_payment_orders_paid_at CHECK (((status IN ('PENDING', 'CLOSED')) = (paid_at IS NULL))),
  CONSTRAINT ck_payment_orders_refund_id CHECK (((status <> 'REFUNDING') OR (refund_id IS NOT NULL))),
  CONSTRAINT ck_payment_orders_refunded_at CHECK (((status = 'REFUNDED') = (refunded_at IS NOT NULL))),
  CONSTRAINT ck_payment_orders_status CHECK ((status IN ('PENDING', 'PAID', 'CLOSED', 'REFUNDING', 'REFUNDED'))),
  CONSTRAINT ck_payment_orders_units CHECK ((units >= 0))
);
CREATE INDEX idx_payment_orders_closed ON headrace.payment_orders USING btree (expires_at) WHERE (status = 'CLOSED');
CREATE INDEX idx_payment_orders_created_at ON headrace.payment_orders USING btree (created_at DESC, id DESC);
CREATE INDEX idx_payment_orders_open ON headrace.payment_orders USING btree (checked_at) WHERE (status IN ('PENDING', 'REFUNDING'));
CREATE INDEX idx_payment_orders_problem ON headrace.payment_orders USING btree (problem) WHERE (problem IS NOT NULL);
CREATE INDEX idx_payment_orders_subscription_id ON headrace.payment_orders USING btree (subscription_id);
CREATE INDEX idx_payment_orders_user_created_at ON headrace.payment_orders USING btree (user_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX uk_payment_orders_entitlement_id ON headrace.payment_orders USING btree (entitlement_id) WHERE (entitlement_id IS NOT NULL);
CREATE UNIQUE INDEX uk_payment_orders_subscription_pending ON headrace.payment_orders USING btree (subscription_id) WHERE (status = 'PENDING');
CREATE UNIQUE INDEX uk_payment_orders_transaction_id ON headrace.payment_orders USING btree (transaction_id) WHERE (transaction_id IS NOT NULL);
CREATE TRIGGER tr_payment_orders_status BEFORE UPDATE OF status ON headrace.payment_orders FOR EACH ROW WHEN ((NOT headrace.payment_order_may_move(old.status, new.status))) EXECUTE FUNCTION headrace.refuse_state_move('status');
CREATE TRIGGER tr_payment_orders_touch BEFORE UPDATE ON headrace.payment_orders FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE ON headrace.payment_orders TO headrace_app;
COMMENT ON TABLE headrace.payment_orders IS 'What somebody was asked to pay for one period of a plan, and what became of it.';
COMMENT ON COLUMN headrace.payment_orders.id IS 'The order number at WeChat Pay, too (out_trade_no).';
COMMENT ON COLUMN headrace.payment_orders.entitlement_id IS 'What it bought; null while unpaid, and where the money came too late to buy anything.';
COMMENT ON COLUMN headrace.payment_orders.units IS 'What the plan gave when it was ordered: changing the plan changes no order.';
COMMENT ON COLUMN headrace.payment_orders.code_url IS 'What the QR code of a NATIVE order says.';
COMMENT ON COLUMN headrace.payment_orders.prepay_id IS 'What a JSAPI order is paid with, in the mini-program.';
COMMENT ON COLUMN headrace.payment_orders.transaction_id IS 'WeChat Pay''s own number of the payment.';
COMMENT ON COLUMN headrace.payment_orders.refund_id IS 'Our number of its refund (out_refund_no).';
COMMENT ON COLUMN headrace.payment_orders.problem IS 'What an operator has to look at: the code of what was wrong with the last message about it.';
COMMENT ON COLUMN headrace.payment_orders.checked_at IS 'When WeChat Pay was asked last what became of it.';
COMMENT ON COLUMN headrace.payment_orders.version IS 'Optimistic lock, and the ETag.';

CREATE TABLE headrace.plans (
  id varchar(64) NOT NULL,
  name varchar(64) NOT NULL,
  price_cents integer NOT NULL,
  currency character(3) NOT NULL DEFAULT 'CNY'::bpchar,
  monthly_quota integer NOT NULL,
  features_json jsonb NOT NULL DEFAULT '[]'::jsonb,
  is_active boolean NOT NULL DEFAULT true,
  sort_order integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  version integer NOT NULL DEFAULT 1,
  CONSTRAINT plans_pkey PRIMARY KEY (id),
  CONSTRAINT uk_plans_name UNIQUE (name),
  CONSTRAINT ck_plans_monthly_quota CHECK ((monthly_quota >= 0)),
  CONSTRAINT ck_plans_price_cents CHECK ((price_cents >= 0))
);
CREATE INDEX idx_plans_active_sort ON headrace.plans USING btree (is_active, sort_order);
CREATE TRIGGER tr_plans_touch BEFORE UPDATE ON headrace.plans FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.plans TO headrace_app;
COMMENT ON TABLE headrace.plans IS 'What can be subscribed to.';
COMMENT ON COLUMN headrace.plans.monthly_quota IS 'Units a month. An image is one; what other files cost is in features_json.';
COMMENT ON COLUMN headrace.plans.version IS 'Optimistic lock, and the ETag.';

CREATE TABLE headrace.queues (
  name varchar(64) NOT NULL,
  paused_at timestamptz,
  max_running integer,
  version integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT queues_pkey PRIMARY KEY (name),
  CONSTRAINT ck_queues_max_running CHECK ((max_running > 0)),
  CONSTRAINT ck_queues_name CHECK ((name <> ''))
);
CREATE TRIGGER tr_queues_touch BEFORE UPDATE ON headrace.queues FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.queues TO headrace_app;
COMMENT ON TABLE headrace.queues IS 'What was said about a queue. One that is not here runs, without a limit.';

CREATE UNLOGGED TABLE headrace.rate_limits (
  bucket varchar(255) NOT NULL,
  tat timestamptz NOT NULL,
  CONSTRAINT rate_limits_pkey PRIMARY KEY (bucket)
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.05);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.rate_limits TO headrace_app;
COMMENT ON TABLE headrace.rate_limits IS 'Rate limits over all API processes (GCRA).';
COMMENT ON COLUMN headrace.rate_limits.tat IS 'Theoretical arrival time: when the bucket will be empty again. In the past: as good as no row.';

CREATE TABLE headrace.recovery_codes (
  user_id varchar(64) NOT NULL,
  code_hash bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_id, code_hash),
  CONSTRAINT fk_recovery_codes_second_factors_user_id FOREIGN KEY (user_id) REFERENCES headrace.second_factors(user_id) ON DELETE CASCADE,
  CONSTRAINT ck_recovery_codes_code_hash CHECK ((octet_length(code_hash) = 32))
);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.recovery_codes TO headrace_app;
COMMENT ON TABLE headrace.recovery_codes IS 'Codes that replace the second factor once; a used code is deleted.';
COMMENT ON COLUMN headrace.recovery_codes.code_hash IS 'SHA-256 of the code, which has 80 random bits.';

CREATE TABLE headrace.relays (
  id varchar(64) NOT NULL,
  host varchar(255) NOT NULL,
  pid integer NOT NULL,
  asleep boolean NOT NULL DEFAULT false,
  started_at timestamptz NOT NULL DEFAULT now(),
  heartbeat_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT relays_pkey PRIMARY KEY (id)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.relays TO headrace_app;
COMMENT ON TABLE headrace.relays IS 'Processes that give events to their consumers. One that is silent for a minute is not there.';
COMMENT ON COLUMN headrace.relays.asleep IS 'Whether it waits to be told of new events (NOTIFY headrace_events).';

CREATE TABLE headrace.removal_passwords (
  task_id varchar(64) NOT NULL,
  sealed text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT removal_passwords_pkey PRIMARY KEY (task_id),
  CONSTRAINT fk_removal_passwords_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks(id) ON DELETE CASCADE
);
GRANT SELECT, INSERT, DELETE ON headrace.removal_passwords TO headrace_app;
COMMENT ON TABLE headrace.removal_passwords IS 'What opens the document of a removal, encrypted. Deleted in the transaction that ends the task.';
COMMENT ON COLUMN headrace.removal_passwords.sealed IS 'Under the deployment''s secret key, bound to the task.';

CREATE TABLE headrace.removals (
  task_id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  asset_id varchar(64) NOT NULL,
  asset_sha256 varchar(64) NOT NULL,
  units integer NOT NULL,
  batch_id varchar(64),
  rights_basis varchar(16) NOT NULL,
  rights_statement text,
  principal_uid varchar(64) NOT NULL,
  api_key_id varchar(64),
  client_ip varchar(64),
  user_agent text,
  request_id varchar(64),
  declared_at timestamptz NOT NULL DEFAULT now(),
  returned_at timestamptz,
  CONSTRAINT removals_pkey PRIMARY KEY (task_id),
  CONSTRAINT fk_removals_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks(id) ON DELETE CASCADE,
  CONSTRAINT fk_removals_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_removals_asset_sha256 CHECK ((asset_sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT ck_removals_rights_basis CHECK ((rights_basis IN ('OWNER', 'LICENSEE', 'AUTHORIZED'))),
  CONSTRAINT ck_removals_units CHECK ((units > 0))
);
CREATE INDEX idx_removals_asset_id ON headrace.removals USING btree (asset_id);
CREATE INDEX idx_removals_batch_id ON headrace.removals USING btree (batch_id) WHERE (batch_id IS NOT NULL);
CREATE INDEX idx_removals_declared_at ON headrace.removals USING btree (declared_at DESC, task_id DESC);
CREATE INDEX idx_removals_user_declared_at ON headrace.removals USING btree (user_id, declared_at DESC, task_id DESC);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.removals TO headrace_app;
COMMENT ON TABLE headrace.removals IS 'Orders of removal, each with its declaration of rights: which bytes, who, from where, when. Goes with its task.';
COMMENT ON COLUMN headrace.removals.asset_sha256 IS 'The bytes that the declaration is about, whatever becomes of the file.';
COMMENT ON COLUMN headrace.removals.batch_id IS 'What was ordered in one request has the same.';
COMMENT ON COLUMN headrace.removals.rights_basis IS 'By what right: the owner''s, a licence''s, or the owner''s permission.';
COMMENT ON COLUMN headrace.removals.returned_at IS 'When the owner returned the result as not good, and got the units back.';

CREATE TABLE headrace.retention_minimums (
  table_name varchar(63) NOT NULL,
  setting varchar(63) NOT NULL,
  keep interval,
  set_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT retention_minimums_pkey PRIMARY KEY (table_name),
  CONSTRAINT uk_retention_minimums_setting UNIQUE (setting),
  CONSTRAINT ck_retention_minimums_keep CHECK ((keep >= '00:00:00'::interval))
);
GRANT SELECT ON headrace.retention_minimums TO headrace_app;
COMMENT ON TABLE headrace.retention_minimums IS 'How long months of each table stay at least, for every role. Only the owner writes it: headrace migrate, from its settings.';
COMMENT ON COLUMN headrace.retention_minimums.setting IS 'The setting of headrace migrate that it is taken from.';
COMMENT ON COLUMN headrace.retention_minimums.keep IS 'From the end of the month. Null keeps it for ever.';

CREATE TABLE headrace.retention_runs (
  table_name varchar(63) NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  removed_rows bigint NOT NULL DEFAULT 0,
  removed_total bigint NOT NULL DEFAULT 0,
  error text,
  marks jsonb,
  CONSTRAINT retention_runs_pkey PRIMARY KEY (table_name),
  CONSTRAINT ck_retention_runs_removed_rows CHECK ((removed_rows >= 0)),
  CONSTRAINT ck_retention_runs_removed_total CHECK ((removed_total >= removed_rows))
);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.retention_runs TO headrace_app;
COMMENT ON TABLE headrace.retention_runs IS 'The last run of retention over each table; the runs before it are in the audit trail and in task_executions.';
COMMENT ON COLUMN headrace.retention_runs.finished_at IS 'Null while it runs, and after it was killed.';
COMMENT ON COLUMN headrace.retention_runs.error IS 'Why it could not do all it should.';
COMMENT ON COLUMN headrace.retention_runs.marks IS 'Up to where earlier runs have looked, by rule: what lies before is not looked at again every time.';

CREATE TABLE headrace.row_archives (
  id varchar(64) NOT NULL,
  table_name varchar(63) NOT NULL,
  location text NOT NULL,
  row_count bigint NOT NULL,
  min_id text NOT NULL,
  max_id text NOT NULL,
  min_at timestamptz NOT NULL,
  max_at timestamptz NOT NULL,
  size_bytes bigint NOT NULL,
  sha256 character(64) NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT row_archives_pkey PRIMARY KEY (id),
  CONSTRAINT uk_row_archives_location UNIQUE (location),
  CONSTRAINT ck_row_archives_at CHECK ((min_at <= max_at)),
  CONSTRAINT ck_row_archives_row_count CHECK ((row_count > 0)),
  CONSTRAINT ck_row_archives_sha256 CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT ck_row_archives_size_bytes CHECK ((size_bytes > 0))
);
CREATE INDEX idx_row_archives_table_name_max_at ON headrace.row_archives USING btree (table_name, max_at DESC);
GRANT SELECT, INSERT ON headrace.row_archives TO headrace_app;
COMMENT ON TABLE headrace.row_archives IS 'Files of rows that are deleted: the summary that stays online. Written by the commit that deletes them.';
COMMENT ON COLUMN headrace.row_archives.location IS 'The object''s name below HEADRACE_ARCHIVE_URL.';
COMMENT ON COLUMN headrace.row_archives.min_id IS 'Of execution_uid, event_id or lock_key, as is max_id.';
COMMENT ON COLUMN headrace.row_archives.min_at IS 'Of created_at, as is max_at.';
COMMENT ON COLUMN headrace.row_archives.sha256 IS 'Of the Parquet file, which was read back before its rows were deleted.';

CREATE TABLE headrace.scheduled_tasks (
  uid varchar(255) NOT NULL,
  user_id varchar(64) NOT NULL DEFAULT 'u_00000000000000000000000000',
  name varchar(255) NOT NULL,
  type varchar(255) NOT NULL,
  description text,
  is_recurring boolean NOT NULL DEFAULT false,
  cron_expr varchar(255),
  interval bigint,
  timezone varchar(64) NOT NULL DEFAULT 'UTC',
  next_run timestamptz,
  misfire_policy varchar(16) NOT NULL DEFAULT 'latest',
  enabled boolean NOT NULL DEFAULT true,
  max_duration_seconds integer NOT NULL DEFAULT 3600,
  max_retries integer NOT NULL DEFAULT 3,
  timeout_grace_period integer NOT NULL DEFAULT 30,
  max_concurrent integer NOT NULL DEFAULT 1,
  priority integer NOT NULL DEFAULT 0,
  labels jsonb NOT NULL DEFAULT '{}'::jsonb,
  data jsonb,
  total_executions integer NOT NULL DEFAULT 0,
  success_executions integer NOT NULL DEFAULT 0,
  failure_executions integer NOT NULL DEFAULT 0,
  consecutive_failures integer NOT NULL DEFAULT 0,
  skipped_runs integer NOT NULL DEFAULT 0,
  last_executed_at timestamptz,
  last_failure_error text,
  version integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  max_extension_seconds integer NOT NULL DEFAULT 0,
  deleted_at timestamptz,
  overlap_policy varchar(16) NOT NULL DEFAULT 'queue_all',
  max_waiting integer,
  retried_attempts integer NOT NULL DEFAULT 0,
  CONSTRAINT scheduled_tasks_pkey PRIMARY KEY (uid),
  CONSTRAINT fk_scheduled_tasks_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_scheduled_tasks_cron_expr CHECK ((btrim(cron_expr) <> '')),
  CONSTRAINT ck_scheduled_tasks_data CHECK ((octet_length(data) <= 10240)),
  CONSTRAINT ck_scheduled_tasks_deleted_at CHECK (((deleted_at IS NULL) OR ((NOT enabled) AND (next_run IS NULL)))),
  CONSTRAINT ck_scheduled_tasks_interval CHECK (("interval" > 0)),
  CONSTRAINT ck_scheduled_tasks_labels CHECK (((jsonb_typeof(labels) = 'object') AND (NOT (labels @? '$.*?(@.type() != "string")'::jsonpath)))),
  CONSTRAINT ck_scheduled_tasks_max_concurrent CHECK ((max_concurrent >= 1)),
  CONSTRAINT ck_scheduled_tasks_max_duration_seconds CHECK ((max_duration_seconds > 0)),
  CONSTRAINT ck_scheduled_tasks_max_extension_seconds CHECK ((max_extension_seconds >= 0)),
  CONSTRAINT ck_scheduled_tasks_max_retries CHECK ((max_retries >= 0)),
  CONSTRAINT ck_scheduled_tasks_max_waiting CHECK (((max_waiting IS NULL) OR ((max_waiting >= 1) AND (overlap_policy = 'queue_all')))),
  CONSTRAINT ck_scheduled_tasks_misfire_policy CHECK ((misfire_policy IN ('latest', 'all', 'none'))),
  CONSTRAINT ck_scheduled_tasks_name CHECK ((btrim(name) <> '')),
  CONSTRAINT ck_scheduled_tasks_overlap_policy CHECK ((overlap_policy IN ('queue_all', 'queue_one', 'skip', 'cancel_running'))),
  CONSTRAINT ck_scheduled_tasks_recurrence CHECK (((NOT is_recurring) OR (num_nonnulls(cron_expr, "interval") = 1))),
  CONSTRAINT ck_scheduled_tasks_retried_attempts CHECK ((retried_attempts >= 0)),
  CONSTRAINT ck_scheduled_tasks_skipped_runs CHECK ((skipped_runs >= 0)),
  CONSTRAINT ck_scheduled_tasks_statistics CHECK (((success_executions >= 0) AND (failure_executions >= 0) AND ((success_executions + failure_executions) <= total_executions) AND ((consecutive_failures >= 0) AND (consecutive_failures <= failure_executions)))),
  CONSTRAINT ck_scheduled_tasks_timeout_grace_period CHECK (((timeout_grace_period >= 0) AND (timeout_grace_period < max_duration_seconds))),
  CONSTRAINT ck_scheduled_tasks_timezone CHECK ((timezone <> '')),
  CONSTRAINT ck_scheduled_tasks_type CHECK ((type <> ''))
) WITH (fillfactor=50);
CREATE INDEX idx_scheduled_tasks_cancel_running ON headrace.scheduled_tasks USING btree (uid) WHERE (overlap_policy = 'cancel_running');
CREATE INDEX idx_scheduled_tasks_deleted_at ON headrace.scheduled_tasks USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE INDEX idx_scheduled_tasks_enabled ON headrace.scheduled_tasks USING btree (enabled);
CREATE INDEX idx_scheduled_tasks_labels ON headrace.scheduled_tasks USING gin (labels jsonb_path_ops);
CREATE INDEX idx_scheduled_tasks_next_run ON headrace.scheduled_tasks USING btree (next_run);
CREATE INDEX idx_scheduled_tasks_priority ON headrace.scheduled_tasks USING btree (priority DESC);
CREATE INDEX idx_scheduled_tasks_type ON headrace.scheduled_tasks USING btree (type);
CREATE UNIQUE INDEX uk_scheduled_tasks_user_name ON headrace.scheduled_tasks USING btree (user_id, name) WHERE (deleted_at IS NULL);
CREATE TRIGGER tr_scheduled_tasks_touch BEFORE UPDATE ON headrace.scheduled_tasks FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.scheduled_tasks TO headrace_app;
COMMENT ON TABLE headrace.scheduled_tasks IS 'Schedules: what is run, when, how often at once and for how long.';
COMMENT ON COLUMN headrace.scheduled_tasks.interval IS 'Seconds from one due time to the next, for a recurring schedule without cron_expr.';
COMMENT ON COLUMN headrace.scheduled_tasks.next_run IS 'The next due time; null when there is none, as after a one-off has fired.';
COMMENT ON COLUMN headrace.scheduled_tasks.misfire_policy IS 'Due times missed while nobody ran: the latest, all of them (up to a cap), or none.';
COMMENT ON COLUMN headrace.scheduled_tasks.timeout_grace_period IS 'Seconds between the request to stop and the kill.';
COMMENT ON COLUMN headrace.scheduled_tasks.priority IS 'Higher starts first.';
COMMENT ON COLUMN headrace.scheduled_tasks.labels IS '{name: text}';
COMMENT ON COLUMN headrace.scheduled_tasks.data IS 'The run''s payload, at most 10 KB of text as PostgreSQL writes it (a blank after each colon and comma).';
COMMENT ON COLUMN headrace.scheduled_tasks.total_executions IS 'Runs that are over, each due time once, whatever its attempts. With the counts beside it it changes in the transaction of a run''s end.';
COMMENT ON COLUMN headrace.scheduled_tasks.failure_executions IS 'Runs whose last attempt ended in failure or timeout. Cancelled and interrupted ones count in the total only.';
COMMENT ON COLUMN headrace.scheduled_tasks.skipped_runs IS 'Due times that did not run: missed and not made up for, or left out by overlap_policy.';
COMMENT ON COLUMN headrace.scheduled_tasks.last_executed_at IS 'When the latest of the runs that are over began.';
COMMENT ON COLUMN headrace.scheduled_tasks.max_extension_seconds IS 'How much longer than max_duration_seconds a run may ask to run.';
COMMENT ON COLUMN headrace.scheduled_tasks.deleted_at IS 'Since when it is gone for everybody; its runs go in batches, and it goes with the last.';
COMMENT ON COLUMN headrace.scheduled_tasks.overlap_policy IS 'A due time that finds max_concurrent runs under way: waits, waits if no other does, is skipped, or has the oldest canceled.';
COMMENT ON COLUMN headrace.scheduled_tasks.max_waiting IS 'With queue_all: how many may wait; further due times are skipped. Null: any number.';
COMMENT ON COLUMN headrace.scheduled_tasks.retried_attempts IS 'Attempts that were followed by another. With total_executions they are all attempts that are over.';

CREATE TABLE headrace.schema_definitions (
  kind varchar(16) NOT NULL,
  name varchar(64) NOT NULL,
  checksum character(64) NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  revision integer NOT NULL DEFAULT 0,
  text text,
  former jsonb NOT NULL DEFAULT '[]'::jsonb,
  CONSTRAINT schema_definitions_pkey PRIMARY KEY (kind, name)
);
GRANT SELECT ON headrace.schema_definitions TO headrace_app;
COMMENT ON TABLE headrace.schema_definitions IS 'Which functions, triggers and views; written by headrace migrate.';
COMMENT ON COLUMN headrace.schema_definitions.former IS 'Replaced texts, each with the newest migration of its time.';

CREATE TABLE headrace.schema_migrations (
  number integer NOT NULL,
  name varchar(64) NOT NULL,
  checksum character(64) NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  needs integer NOT NULL DEFAULT 0,
  CONSTRAINT schema_migrations_pkey PRIMARY KEY (number)
);
GRANT SELECT ON headrace.schema_migrations TO headrace_app;
COMMENT ON TABLE headrace.schema_migrations IS 'Which migrations this database has; written by headrace migrate.';
COMMENT ON COLUMN headrace.schema_migrations.needs IS 'The migration that programs must know to run after this one.';

CREATE TABLE headrace.second_factors (
  user_id varchar(64) NOT NULL,
  sealed_secret text NOT NULL,
  last_step bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT second_factors_pkey PRIMARY KEY (user_id),
  CONSTRAINT fk_second_factors_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id) ON DELETE CASCADE
) WITH (fillfactor=85);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.second_factors TO headrace_app;
COMMENT ON TABLE headrace.second_factors IS 'TOTP secrets (RFC 6238), encrypted. In use when users.second_factor_at is set; before that they wait for the first code.';
COMMENT ON COLUMN headrace.second_factors.last_step IS 'The time step of the last accepted code: no code is accepted twice.';

CREATE TABLE headrace.sessions (
  id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  token_hash bytea NOT NULL,
  client_ip inet,
  user_agent text,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz,
  CONSTRAINT sessions_pkey PRIMARY KEY (id),
  CONSTRAINT uk_sessions_token_hash UNIQUE (token_hash),
  CONSTRAINT fk_sessions_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id) ON DELETE CASCADE,
  CONSTRAINT ck_sessions_expires_at CHECK ((expires_at > created_at)),
  CONSTRAINT ck_sessions_token_hash CHECK ((octet_length(token_hash) = 32))
) WITH (fillfactor=85);
CREATE INDEX idx_sessions_expires_at ON headrace.sessions USING btree (expires_at);
CREATE INDEX idx_sessions_user_id_created_at ON headrace.sessions USING btree (user_id, created_at DESC);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.sessions TO headrace_app;
COMMENT ON TABLE headrace.sessions IS 'People who are logged in. The token itself is only in the cookie.';
COMMENT ON COLUMN headrace.sessions.token_hash IS 'SHA-256 of the token.';

CREATE TABLE headrace.statistics_durations (
  minute timestamptz NOT NULL,
  task_type varchar(255) NOT NULL,
  number bigint NOT NULL,
  waited_classes smallint[] NOT NULL,
  waited_counts bigint[] NOT NULL,
  longest_wait double precision NOT NULL,
  ran_classes smallint[] NOT NULL,
  ran_counts bigint[] NOT NULL,
  longest_run double precision NOT NULL,
  CONSTRAINT statistics_durations_pkey PRIMARY KEY (minute, task_type),
  CONSTRAINT fk_statistics_durations_minute FOREIGN KEY (minute) REFERENCES headrace.statistics_minutes(minute) ON DELETE CASCADE,
  CONSTRAINT ck_statistics_durations_number CHECK ((number > 0))
);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.statistics_durations TO headrace_app;
COMMENT ON TABLE headrace.statistics_durations IS 'How long tasks waited and ran that ended in a minute, counted in classes; admin/statistics/model.py has their bounds.';
COMMENT ON COLUMN headrace.statistics_durations.task_type IS 'Empty: all types together.';
COMMENT ON COLUMN headrace.statistics_durations.waited_classes IS 'Before the last attempt began; only classes with a task.';
COMMENT ON COLUMN headrace.statistics_durations.longest_wait IS 'In seconds, exact: no percentile is above it.';
COMMENT ON COLUMN headrace.statistics_durations.ran_classes IS 'How long the last attempt took.';

CREATE TABLE headrace.statistics_minutes (
  minute timestamptz NOT NULL,
  workers integer,
  slots integer,
  waited bigint[] NOT NULL,
  ran bigint[] NOT NULL,
  measured_at timestamptz NOT NULL DEFAULT now(),
  oldest_xid bigint,
  next_xid bigint,
  slots_busy integer,
  CONSTRAINT statistics_minutes_pkey PRIMARY KEY (minute),
  CONSTRAINT ck_statistics_minutes_minute CHECK ((((EXTRACT(epoch FROM minute))::bigint % (60)::bigint) = 0)),
  CONSTRAINT ck_statistics_minutes_workers CHECK (((workers IS NULL) = (slots IS NULL)))
);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.statistics_minutes TO headrace_app;
COMMENT ON TABLE headrace.statistics_minutes IS 'One row for each minute that is over: whoever inserts it measures the minute.';
COMMENT ON COLUMN headrace.statistics_minutes.workers IS 'That were alive; null if nobody looked while it was so.';
COMMENT ON COLUMN headrace.statistics_minutes.slots IS 'How many tasks they may run at once.';
COMMENT ON COLUMN headrace.statistics_minutes.waited IS 'Unused: statistics_durations has them.';
COMMENT ON COLUMN headrace.statistics_minutes.ran IS 'Unused: statistics_durations has them.';
COMMENT ON COLUMN headrace.statistics_minutes.oldest_xid IS 'The oldest transaction that was open when the minute was measured.';
COMMENT ON COLUMN headrace.statistics_minutes.next_xid IS 'The first transaction that had not begun when the minute was measured.';
COMMENT ON COLUMN headrace.statistics_minutes.slots_busy IS 'How many of the slots had a task.';

CREATE TABLE headrace.statistics_queues (
  minute timestamptz NOT NULL,
  queue varchar(64) NOT NULL,
  submitted bigint NOT NULL DEFAULT 0,
  succeeded bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  canceled bigint NOT NULL DEFAULT 0,
  waiting bigint,
  delayed bigint,
  running bigint,
  oldest_seconds double precision,
  needs_input bigint DEFAULT 0,
  CONSTRAINT statistics_queues_pkey PRIMARY KEY (minute, queue),
  CONSTRAINT fk_statistics_queues_minute FOREIGN KEY (minute) REFERENCES headrace.statistics_minutes(minute) ON DELETE CASCADE,
  CONSTRAINT ck_statistics_queues_counts CHECK ((LEAST(submitted, succeeded, failed, canceled) >= 0))
);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.statistics_queues TO headrace_app;
COMMENT ON TABLE headrace.statistics_queues IS 'What happened in a queue in a minute; no row where nothing did and nothing was there.';
COMMENT ON COLUMN headrace.statistics_queues.waiting IS 'When the minute was measured, up to a bound; null if nobody looked while it was so.';
COMMENT ON COLUMN headrace.statistics_queues.oldest_seconds IS 'For how long the first of those that are due has waited.';
COMMENT ON COLUMN headrace.statistics_queues.needs_input IS 'Of the failed: removals with a question to their owner, or without a mark.';

CREATE TABLE headrace.subscriptions (
  id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  plan_id varchar(64) NOT NULL,
  status varchar(16) NOT NULL,
  channel varchar(16) NOT NULL,
  external_order_id varchar(128),
  started_at timestamptz,
  effective_at timestamptz,
  expire_at timestamptz,
  canceled_at timestamptz,
  auto_renew boolean NOT NULL DEFAULT false,
  meta_json jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  version integer NOT NULL DEFAULT 1,
  expiring_told_for timestamptz,
  CONSTRAINT subscriptions_pkey PRIMARY KEY (id),
  CONSTRAINT fk_subscriptions_plans_plan_id FOREIGN KEY (plan_id) REFERENCES headrace.plans(id),
  CONSTRAINT fk_subscriptions_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_subscriptions_channel CHECK ((channel = 'WECHAT_PAY')),
  CONSTRAINT ck_subscriptions_status CHECK ((status IN ('PENDING', 'ACTIVE', 'PAST_DUE', 'CANCELED', 'EXPIRED', 'REFUNDED')))
);
CREATE INDEX idx_subscriptions_expire_at ON headrace.subscriptions USING btree (expire_at) WHERE (status IN ('ACTIVE', 'PAST_DUE'));
CREATE INDEX idx_subscriptions_user_status ON headrace.subscriptions USING btree (user_id, status, created_at DESC);
CREATE UNIQUE INDEX uk_subscriptions_external_order_id ON headrace.subscriptions USING btree (external_order_id) WHERE (external_order_id IS NOT NULL);
CREATE UNIQUE INDEX uk_subscriptions_user_live ON headrace.subscriptions USING btree (user_id) WHERE (status IN ('ACTIVE', 'PAST_DUE'));
CREATE TRIGGER tr_subscriptions_status BEFORE UPDATE OF status ON headrace.subscriptions FOR EACH ROW WHEN ((NOT headrace.subscription_may_move(old.status, new.status))) EXECUTE FUNCTION headrace.refuse_state_move('status');
CREATE TRIGGER tr_subscriptions_touch BEFORE UPDATE ON headrace.subscriptions FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.subscriptions TO headrace_app;
COMMENT ON TABLE headrace.subscriptions IS 'Who bought which plan. One order makes one subscription.';
COMMENT ON COLUMN headrace.subscriptions.external_order_id IS 'The order that made it; payment_orders has this one and those of its renewals.';
COMMENT ON COLUMN headrace.subscriptions.effective_at IS 'Since when it has run without a gap. Periods are counted in months from here.';
COMMENT ON COLUMN headrace.subscriptions.expire_at IS 'The end of the last period that is paid for.';
COMMENT ON COLUMN headrace.subscriptions.canceled_at IS 'When its user said that it shall not go on; an ACTIVE one lasts to expire_at all the same.';
COMMENT ON COLUMN headrace.subscriptions.version IS 'Optimistic lock, and the ETag.';
COMMENT ON COLUMN headrace.subscriptions.expiring_told_for IS 'The expire_at of which subscription.expiring has told.';

CREATE TABLE headrace.system_configs (
  id bigint NOT NULL DEFAULT nextval('headrace.system_configs_id_seq'::regclass),
  config_key varchar(128) NOT NULL,
  config_scope varchar(32) NOT NULL DEFAULT 'GLOBAL',
  scope_id varchar(64) NOT NULL DEFAULT '',
  config_value jsonb NOT NULL,
  version integer NOT NULL DEFAULT 1,
  is_active boolean NOT NULL DEFAULT true,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT system_configs_pkey PRIMARY KEY (id),
  CONSTRAINT uk_system_configs_key_scope UNIQUE (config_key, config_scope, scope_id),
  CONSTRAINT ck_system_configs_config_scope CHECK ((config_scope IN ('GLOBAL', 'TENANT', 'USER'))),
  CONSTRAINT ck_system_configs_scope_id CHECK (((scope_id = '') = (config_scope = 'GLOBAL')))
);
CREATE INDEX idx_system_configs_active_key ON headrace.system_configs USING btree (is_active, config_key);
CREATE INDEX idx_system_configs_created_at ON headrace.system_configs USING btree (created_at DESC, id DESC);
CREATE INDEX idx_system_configs_scope_id ON headrace.system_configs USING btree (scope_id) WHERE (scope_id <> '');
CREATE TRIGGER tr_system_configs_tell AFTER INSERT OR DELETE OR UPDATE ON headrace.system_configs FOR EACH ROW EXECUTE FUNCTION headrace.notify_config_change();
CREATE TRIGGER tr_system_configs_touch BEFORE UPDATE ON headrace.system_configs FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.system_configs TO headrace_app;
COMMENT ON TABLE headrace.system_configs IS 'Settings for everyone, a tenant or a user.';
COMMENT ON COLUMN headrace.system_configs.scope_id IS 'Whose: empty for GLOBAL, otherwise the tenant or the user.';
COMMENT ON COLUMN headrace.system_configs.version IS 'Counts the changes; optimistic lock, and the ETag.';

CREATE TABLE headrace.task_executions (
  id bigint NOT NULL DEFAULT nextval('headrace.task_executions_id_seq'::regclass),
  task_uid varchar(255) NOT NULL,
  task_name varchar(255) NOT NULL,
  task_type varchar(255) NOT NULL,
  execution_uid varchar(255) NOT NULL,
  task_id varchar(64),
  run_by varchar(255),
  scheduled_at timestamptz NOT NULL,
  started_at timestamptz,
  finished_at timestamptz,
  state varchar(32) NOT NULL,
  result text,
  error_message text,
  error_stack text,
  duration_ms bigint NOT NULL DEFAULT 0,
  progress integer NOT NULL DEFAULT 0,
  retry_count integer NOT NULL DEFAULT 0,
  trigger_type varchar(32) NOT NULL,
  trigger_by varchar(255),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  deadline_at timestamptz,
  user_id varchar(64) NOT NULL,
  CONSTRAINT task_executions_pkey PRIMARY KEY (id),
  CONSTRAINT uk_task_executions_execution_uid UNIQUE (execution_uid),
  CONSTRAINT fk_task_executions_scheduled_tasks_task_uid FOREIGN KEY (task_uid) REFERENCES headrace.scheduled_tasks(uid) ON DELETE CASCADE,
  CONSTRAINT fk_task_executions_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks(id) ON DELETE SET NULL,
  CONSTRAINT ck_task_executions_duration_ms CHECK ((duration_ms >= 0)),
  CONSTRAINT ck_task_executions_error_stack CHECK ((octet_length(error_stack) <= 10240)),
  CONSTRAINT ck_task_executions_execution_uid CHECK ((execution_uid ~ '^exe_[0-7][0-9a-hjkmnp-tv-z]{25}$')),
  CONSTRAINT ck_task_executions_finished_at CHECK ((((finished_at IS NOT NULL) = (state IN ('success', 'failure', 'timeout', 'cancelled', 'interrupted'))) AND ((finished_at >= started_at) OR (finished_at IS NULL)))),
  CONSTRAINT ck_task_executions_progress CHECK (((progress >= 0) AND (progress <= 100))),
  CONSTRAINT ck_task_executions_result CHECK ((octet_length(result) <= 65536)),
  CONSTRAINT ck_task_executions_retry_count CHECK ((retry_count >= 0)),
  CONSTRAINT ck_task_executions_started CHECK (
CASE
    WHEN (state = 'pending') THEN ((run_by IS NULL) AND (started_at IS NULL))
    ELSE ((run_by IS NOT NULL) AND (started_at IS NOT NULL))
END),
  CONSTRAINT ck_task_executions_state CHECK ((state IN ('pending', 'running', 'success', 'failure', 'timeout', 'cancelled', 'interrupted'))),
  CONSTRAINT ck_task_executions_trigger_by CHECK (((trigger_type <> 'manual') OR (trigger_by IS NOT NULL))),
  CONSTRAINT ck_task_executions_trigger_type CHECK ((trigger_type IN ('scheduled', 'manual')))
);
CREATE INDEX idx_task_executions_active ON headrace.task_executions USING btree (task_uid) WHERE ((state IN ('pending', 'running')) AND (task_id IS NOT NULL));
CREATE INDEX idx_task_executions_composite ON headrace.task_executions USING btree (task_name, state, started_at DESC);
CREATE INDEX idx_task_executions_created_at ON headrace.task_executions USING btree (created_at);
CREATE INDEX idx_task_executions_manual ON headrace.task_executions USING btree (scheduled_at DESC, execution_uid DESC) WHERE (trigger_type = 'manual');
CREATE INDEX idx_task_executions_scheduled_at ON headrace.task_executions USING btree (scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_started_at ON headrace.task_executions USING btree (started_at DESC);
CREATE INDEX idx_task_executions_state ON headrace.task_executions USING btree (state, scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_task_id ON headrace.task_executions USING btree (task_id) WHERE (task_id IS NOT NULL);
CREATE INDEX idx_task_executions_task_name ON headrace.task_executions USING btree (task_name);
CREATE INDEX idx_task_executions_task_uid ON headrace.task_executions USING btree (task_uid, scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_type_state ON headrace.task_executions USING btree (task_type, state COLLATE "C", scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_user_manual ON headrace.task_executions USING btree (user_id, scheduled_at DESC, execution_uid DESC) WHERE (trigger_type = 'manual');
CREATE INDEX idx_task_executions_user_state ON headrace.task_executions USING btree (user_id, state COLLATE "C", scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_waiting ON headrace.task_executions USING btree (task_uid, scheduled_at, id) WHERE ((state = 'pending') AND (task_id IS NULL));
CREATE UNIQUE INDEX uk_task_executions_fire ON headrace.task_executions USING btree (task_uid, scheduled_at, retry_count) WHERE (trigger_type = 'scheduled');
CREATE TRIGGER tr_task_executions_state BEFORE UPDATE OF state ON headrace.task_executions FOR EACH ROW WHEN ((NOT headrace.execution_may_move(old.state, new.state))) EXECUTE FUNCTION headrace.refuse_state_move('state');
CREATE TRIGGER tr_task_executions_touch BEFORE UPDATE ON headrace.task_executions FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
CREATE TRIGGER tr_task_executions_user_id BEFORE INSERT ON headrace.task_executions FOR EACH ROW WHEN ((new.user_id IS NULL)) EXECUTE FUNCTION headrace.fill_execution_owner();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.task_executions TO headrace_app;
COMMENT ON TABLE headrace.task_executions IS 'The runs of schedules: one row for each attempt.';
COMMENT ON COLUMN headrace.task_executions.task_uid IS 'The schedule.';
COMMENT ON COLUMN headrace.task_executions.task_id IS 'The task that runs it.';
COMMENT ON COLUMN headrace.task_executions.run_by IS 'The instance that runs it; null while pending.';
COMMENT ON COLUMN headrace.task_executions.scheduled_at IS 'The due time, not the moment of firing.';
COMMENT ON COLUMN headrace.task_executions.error_stack IS 'At most 10 KB: the top of the stack.';
COMMENT ON COLUMN headrace.task_executions.trigger_by IS 'The user who ran it by hand.';
COMMENT ON COLUMN headrace.task_executions.deadline_at IS 'When it is asked to stop, by the database''s clock; later after an extension.';
COMMENT ON COLUMN headrace.task_executions.user_id IS 'Whose it is: the schedule''s owner, who never changes.';

CREATE TABLE headrace.task_lanes (
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  queue varchar(64) NOT NULL,
  task_type varchar(255) NOT NULL,
  user_id varchar(64) NOT NULL,
  limit_key varchar(255) NOT NULL DEFAULT '',
  labels jsonb NOT NULL DEFAULT '{}'::jsonb,
  only_once boolean NOT NULL DEFAULT false,
  route_id integer,
  created_at timestamptz NOT NULL DEFAULT now(),
  retired_at timestamptz,
  CONSTRAINT task_lanes_pkey PRIMARY KEY (id)
);
CREATE INDEX idx_task_lanes_lookup ON headrace.task_lanes USING btree (queue, task_type, user_id, limit_key, labels, only_once, id) WHERE (retired_at IS NULL);
CREATE INDEX idx_task_lanes_undeclared ON headrace.task_lanes USING btree (task_type) WHERE (labels = '{"undeclared type": ""}'::jsonb);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.task_lanes TO headrace_app;
COMMENT ON TABLE headrace.task_lanes IS 'Queue, type, user, limit and labels: tasks that are alike to a worker.';
COMMENT ON COLUMN headrace.task_lanes.only_once IS 'A single attempt is allowed: taken only when it starts at once, because a worker that dies would spend it.';
COMMENT ON COLUMN headrace.task_lanes.route_id IS 'Its row of task_routes; null in lanes of an earlier release, which are no longer used.';
COMMENT ON COLUMN headrace.task_lanes.retired_at IS 'Since when new tasks get another lane. A retired lane without tasks is deleted a day later.';

CREATE TABLE headrace.task_locks (
  id bigint NOT NULL DEFAULT nextval('headrace.task_locks_id_seq'::regclass),
  lock_key varchar(255) NOT NULL,
  fence bigint NOT NULL,
  holder_id varchar(255) NOT NULL,
  token varchar(255) NOT NULL,
  state varchar(32) NOT NULL,
  acquired_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  released_at timestamptz,
  purpose varchar(255),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  user_id varchar(64) NOT NULL DEFAULT 'u_00000000000000000000000000',
  CONSTRAINT task_locks_pkey PRIMARY KEY (id),
  CONSTRAINT uk_task_locks_key_fence UNIQUE (lock_key, user_id, fence),
  CONSTRAINT fk_task_locks_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_task_locks_expires_at CHECK ((expires_at > acquired_at)),
  CONSTRAINT ck_task_locks_fence CHECK ((fence > 0)),
  CONSTRAINT ck_task_locks_lock_key CHECK ((lock_key <> '')),
  CONSTRAINT ck_task_locks_released_at CHECK ((((released_at IS NOT NULL) = (state = 'released')) AND ((released_at >= acquired_at) OR (released_at IS NULL)))),
  CONSTRAINT ck_task_locks_state CHECK ((state IN ('active', 'expired', 'released')))
);
CREATE INDEX idx_task_locks_expires_at ON headrace.task_locks USING btree (expires_at);
CREATE INDEX idx_task_locks_holder ON headrace.task_locks USING btree (holder_id, id);
CREATE UNIQUE INDEX idx_task_locks_key ON headrace.task_locks USING btree (user_id, lock_key) WHERE (state = 'active');
CREATE INDEX idx_task_locks_state ON headrace.task_locks USING btree (state, id);
CREATE INDEX idx_task_locks_user ON headrace.task_locks USING btree (user_id, state, id);
CREATE TRIGGER tr_task_locks_state BEFORE UPDATE OF state ON headrace.task_locks FOR EACH ROW WHEN ((NOT headrace.lock_may_move(old.state, new.state))) EXECUTE FUNCTION headrace.refuse_state_move('state');
CREATE TRIGGER tr_task_locks_touch BEFORE UPDATE ON headrace.task_locks FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.task_locks TO headrace_app;
COMMENT ON TABLE headrace.task_locks IS 'Who holds and who held which lock.';
COMMENT ON COLUMN headrace.task_locks.fence IS 'Grows with each acquisition of the key: what a holder guards can refuse an older one.';
COMMENT ON COLUMN headrace.task_locks.token IS 'SHA-256 of the token, which is known to the holder alone; renewing and releasing ask for it.';
COMMENT ON COLUMN headrace.task_locks.user_id IS 'Whose lock it is; the system''s own by default.';

CREATE TABLE headrace.task_logs (
  id bigint NOT NULL DEFAULT nextval('headrace.task_logs_id_seq'::regclass),
  task_id varchar(64) NOT NULL,
  attempt integer NOT NULL DEFAULT 1,
  status varchar(32) NOT NULL,
  message text,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT task_logs_pkey PRIMARY KEY (id),
  CONSTRAINT ck_task_logs_attempt CHECK ((attempt >= 0))
);
CREATE INDEX idx_task_logs_task ON headrace.task_logs USING btree (task_id, id);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.task_logs TO headrace_app;
COMMENT ON TABLE headrace.task_logs IS 'One row for each attempt''s outcome and for each line that a handler logs.';
COMMENT ON COLUMN headrace.task_logs.attempt IS '0 for what happens to a task outside any attempt, such as a cancellation while queued.';

CREATE TABLE headrace.task_queue (
  seq bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY,
  run_at timestamptz NOT NULL,
  claimed_at timestamptz,
  lane_id integer NOT NULL,
  precedence integer NOT NULL,
  attempt integer NOT NULL DEFAULT 0,
  worker integer,
  limited boolean NOT NULL DEFAULT false,
  cancel_requested boolean NOT NULL DEFAULT false,
  task_id varchar(64) NOT NULL,
  units integer,
  used integer,
  route_id integer NOT NULL DEFAULT 0,
  delayed boolean NOT NULL DEFAULT false,
  ended jsonb,
  CONSTRAINT task_queue_pkey PRIMARY KEY (seq),
  CONSTRAINT ck_task_queue_attempt CHECK (((attempt >= 0) AND (attempt <= 1048575))),
  CONSTRAINT ck_task_queue_claim CHECK (((worker IS NULL) = (claimed_at IS NULL))),
  CONSTRAINT ck_task_queue_used CHECK (((used IS NULL) OR ((units IS NOT NULL) AND ((used >= 0) AND (used <= units))))) NOT VALID
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_cost_delay=0);
CREATE INDEX idx_task_queue_cancel ON headrace.task_queue USING btree (worker) WHERE cancel_requested;
CREATE INDEX idx_task_queue_claim ON headrace.task_queue USING btree (route_id, precedence, lane_id, run_at, seq) WHERE ((worker IS NULL) AND (NOT delayed));
CREATE INDEX idx_task_queue_delayed ON headrace.task_queue USING btree (run_at, seq) WHERE delayed;
CREATE INDEX idx_task_queue_limited ON headrace.task_queue USING btree (lane_id) WHERE limited;
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.task_queue TO headrace_app;
COMMENT ON TABLE headrace.task_queue IS 'One narrow row for each task that is waiting or running; no foreign keys, for speed: the same statement writes both tables.';
COMMENT ON COLUMN headrace.task_queue.precedence IS 'The priority with its sign turned, so that the index runs one way.';
COMMENT ON COLUMN headrace.task_queue.attempt IS 'With worker, the fence of every later write.';
COMMENT ON COLUMN headrace.task_queue.limited IS 'Whether it takes up a slot of a concurrency limit; slots are counted from these rows, never by a counter.';
COMMENT ON COLUMN headrace.task_queue.units IS 'What the ledger holds for it; null: it costs nothing. Whoever ends the task settles it.';
COMMENT ON COLUMN headrace.task_queue.used IS 'What its handler says it has used, in this attempt; null: all of it.';
COMMENT ON COLUMN headrace.task_queue.route_id IS 'Which workers may take it: a row of task_routes; 0 until adopt_queue_rows sets it, in rows that a program of an earlier release wrote.';
COMMENT ON COLUMN headrace.task_queue.delayed IS 'Its run_at had not come when the row was written; release_delayed clears it.';
COMMENT ON COLUMN headrace.task_queue.ended IS 'How the attempt ended, where its worker stopped before it could write the end; the reaper writes it.';

CREATE TABLE headrace.task_results (
  id bigint NOT NULL DEFAULT nextval('headrace.task_results_id_seq'::regclass),
  task_id varchar(64) NOT NULL,
  result_bucket varchar(63) NOT NULL DEFAULT 'result',
  result_key text NOT NULL,
  preview_bucket varchar(63),
  preview_key text,
  expire_at timestamptz,
  metrics_json jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  file_name varchar(255),
  mime_type varchar(128),
  size_bytes bigint,
  sha256 varchar(64),
  preview_mime_type varchar(128),
  preview_size_bytes bigint,
  deleted_at timestamptz,
  purged_at timestamptz,
  comparison_key text,
  comparison_size_bytes bigint,
  CONSTRAINT task_results_pkey PRIMARY KEY (id),
  CONSTRAINT uk_task_results_task_id UNIQUE (task_id),
  CONSTRAINT fk_task_results_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks(id) ON DELETE CASCADE
);
CREATE INDEX idx_task_results_expire_at ON headrace.task_results USING btree (expire_at);
CREATE INDEX idx_task_results_result_key ON headrace.task_results USING btree (result_key);
CREATE TRIGGER tr_task_results_touch BEFORE UPDATE ON headrace.task_results FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.task_results TO headrace_app;
COMMENT ON TABLE headrace.task_results IS 'Where a task''s files lie, and until when.';
COMMENT ON COLUMN headrace.task_results.deleted_at IS 'Since when nobody reaches the files any more.';
COMMENT ON COLUMN headrace.task_results.purged_at IS 'When the bytes were gone.';
COMMENT ON COLUMN headrace.task_results.comparison_key IS 'Where the picture of before and after lies, in the bucket preview; null where nothing can be drawn.';

CREATE TABLE headrace.task_routes (
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  task_type varchar(255) NOT NULL,
  labels jsonb NOT NULL DEFAULT '{}'::jsonb,
  queue varchar(64) NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT task_routes_pkey PRIMARY KEY (id)
);
CREATE INDEX idx_task_routes_lookup ON headrace.task_routes USING btree (task_type, labels, queue);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.task_routes TO headrace_app;
COMMENT ON TABLE headrace.task_routes IS 'Type, labels and queue: what decides which workers may take a task. Duplicates do no harm.';

CREATE TABLE headrace.task_steps (
  id bigint NOT NULL DEFAULT nextval('headrace.task_steps_id_seq'::regclass),
  task_id varchar(64) NOT NULL,
  step_name varchar(64) NOT NULL,
  status varchar(16) NOT NULL,
  attempt integer NOT NULL DEFAULT 1,
  started_at timestamptz,
  ended_at timestamptz,
  duration_ms integer,
  detail_json jsonb,
  trace_id varchar(64),
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT task_steps_pkey PRIMARY KEY (id),
  CONSTRAINT uk_task_steps_task_step_attempt UNIQUE (task_id, step_name, attempt),
  CONSTRAINT fk_task_steps_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks(id) ON DELETE CASCADE,
  CONSTRAINT ck_task_steps_attempt CHECK ((attempt >= 1)),
  CONSTRAINT ck_task_steps_duration_ms CHECK ((duration_ms >= 0)),
  CONSTRAINT ck_task_steps_status CHECK ((status IN ('PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'SKIPPED'))),
  CONSTRAINT ck_task_steps_step_name CHECK (((step_name IN ('PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING')) OR (step_name ~ '^[a-z][a-z0-9_.-]{0,63}$')))
);
CREATE INDEX idx_task_steps_task_id_created_at ON headrace.task_steps USING btree (task_id, created_at DESC);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.task_steps TO headrace_app;
COMMENT ON TABLE headrace.task_steps IS 'One row for each step and attempt.';
COMMENT ON COLUMN headrace.task_steps.step_name IS 'The four upper-case names are the media steps; other types name theirs in lower case.';

CREATE TABLE headrace.task_types (
  name varchar(255) NOT NULL,
  queue varchar(64) NOT NULL DEFAULT 'default',
  priority integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL DEFAULT 3,
  timeout_seconds integer,
  emits_events boolean NOT NULL DEFAULT true,
  followers text[] NOT NULL DEFAULT '{}'::text[],
  max_running integer,
  max_running_per_key integer,
  payload_schema jsonb,
  description text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now(),
  limit_key varchar(255),
  units varchar(255),
  emits_always boolean DEFAULT false,
  submit varchar(255) DEFAULT 'admins',
  payload_check jsonb,
  retention jsonb,
  limited_by_plan boolean DEFAULT false,
  CONSTRAINT task_types_pkey PRIMARY KEY (name),
  CONSTRAINT ck_task_types_limit_key CHECK ((limit_key ~ '^(user|payload(\.[A-Za-z_][A-Za-z0-9_-]*)+)$')),
  CONSTRAINT ck_task_types_max_attempts CHECK ((max_attempts > 0)),
  CONSTRAINT ck_task_types_max_running CHECK ((max_running > 0)),
  CONSTRAINT ck_task_types_max_running_per_key CHECK ((max_running_per_key > 0)),
  CONSTRAINT ck_task_types_queue CHECK ((queue <> '')),
  CONSTRAINT ck_task_types_retention CHECK ((jsonb_typeof(retention) = 'object')),
  CONSTRAINT ck_task_types_submit CHECK ((submit ~ '^(admins|users|tasks:submit:[A-Za-z][A-Za-z0-9_.:-]*)$')),
  CONSTRAINT ck_task_types_timeout_seconds CHECK ((timeout_seconds > 0)),
  CONSTRAINT ck_task_types_units CHECK ((units ~ '^([1-9][0-9]{0,8}|payload(\.[A-Za-z_][A-Za-z0-9_-]*)+)$'))
);
CREATE TRIGGER tr_task_types_touch BEFORE UPDATE ON headrace.task_types FOR EACH ROW WHEN (((NOT (new.updated_at IS DISTINCT FROM old.updated_at)) AND (NOT (new.seen_at IS DISTINCT FROM old.seen_at)))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.task_types TO headrace_app;
COMMENT ON TABLE headrace.task_types IS 'What workers have registered: how a task of each type is queued, checked and limited, for submitters that do not have the code.';
COMMENT ON COLUMN headrace.task_types.followers IS 'Who moves with its tasks, besides the outbox: for a worker that settles what another, dead one held, and does not have its code.';
COMMENT ON COLUMN headrace.task_types.payload_schema IS 'JSON Schema of the payload; null takes anything.';
COMMENT ON COLUMN headrace.task_types.seen_at IS 'When a program last declared it, to the hour, or a worker that is no longer listed was last alive with it.';
COMMENT ON COLUMN headrace.task_types.limit_key IS 'What the limit key of a task is: user, or payload.FIELD, a path into the payload; null: what is given with it.';
COMMENT ON COLUMN headrace.task_types.units IS 'What a task costs: a whole number, or payload.FIELD, a path into the payload; null: nothing.';
COMMENT ON COLUMN headrace.task_types.emits_always IS 'Whether its events are written also when nobody wants them.';
COMMENT ON COLUMN headrace.task_types.submit IS 'Who may submit it: admins, users, or a scope that an API key must have been given; null: admins.';
COMMENT ON COLUMN headrace.task_types.payload_check IS 'What of payload_schema headrace.payload_fault checks; null: nothing.';
COMMENT ON COLUMN headrace.task_types.retention IS '{status: seconds}: how long a task is kept after it has ended like this; null seconds: for ever. What is not there is as the settings say.';
COMMENT ON COLUMN headrace.task_types.limited_by_plan IS 'Whether a user''s running tasks of all such types together are limited by what their plan says.';

CREATE TABLE headrace.tasks (
  id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  task_type varchar(255) NOT NULL,
  title varchar(255) NOT NULL,
  payload jsonb,
  priority integer NOT NULL DEFAULT 0,
  input_asset_id varchar(64),
  quality_level varchar(16),
  mode varchar(16),
  output_format varchar(16),
  status varchar(24) NOT NULL DEFAULT 'QUEUED',
  current_step varchar(64),
  progress smallint NOT NULL DEFAULT 0,
  attempt integer NOT NULL DEFAULT 0,
  retries integer NOT NULL DEFAULT 0,
  eta_sec integer,
  result jsonb,
  error_code varchar(16),
  error_message text,
  queue varchar(64) NOT NULL DEFAULT 'default',
  run_at timestamptz NOT NULL DEFAULT now(),
  max_attempts integer NOT NULL DEFAULT 1,
  timeout_seconds integer,
  worker_id varchar(64),
  cancel_requested_at timestamptz,
  schedule_uid varchar(255),
  trace_id varchar(64),
  queued_at timestamptz,
  started_at timestamptz,
  finished_at timestamptz,
  version integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  labels jsonb,
  limit_key varchar(255),
  queue_seq bigint,
  grace_seconds integer,
  extension_seconds integer,
  left_to_type text[],
  idempotency_key varchar(255),
  CONSTRAINT tasks_pkey PRIMARY KEY (id),
  CONSTRAINT fk_tasks_assets_input_asset_id FOREIGN KEY (input_asset_id) REFERENCES headrace.assets(id),
  CONSTRAINT fk_tasks_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_tasks_attempt CHECK ((attempt >= 0)),
  CONSTRAINT ck_tasks_current_step CHECK (((current_step IN ('PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING')) OR (current_step ~ '^[a-z][a-z0-9_.-]{0,63}$'))),
  CONSTRAINT ck_tasks_eta_sec CHECK ((eta_sec >= 0)),
  CONSTRAINT ck_tasks_extension_seconds CHECK ((extension_seconds >= 0)),
  CONSTRAINT ck_tasks_finished_at CHECK (((finished_at IS NOT NULL) = (status IN ('SUCCEEDED', 'FAILED', 'CANCELED')))),
  CONSTRAINT ck_tasks_grace_seconds CHECK ((grace_seconds >= 0)),
  CONSTRAINT ck_tasks_max_attempts CHECK ((max_attempts > 0)),
  CONSTRAINT ck_tasks_media CHECK (
CASE
    WHEN (task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT')) THEN (num_nulls(input_asset_id, quality_level, mode, output_format) = 0)
    ELSE (num_nonnulls(input_asset_id, quality_level, mode, output_format) = 0)
END),
  CONSTRAINT ck_tasks_mode CHECK ((mode IN ('AUTO', 'MANUAL'))),
  CONSTRAINT ck_tasks_progress CHECK (((progress >= 0) AND (progress <= 100))),
  CONSTRAINT ck_tasks_quality_level CHECK ((quality_level IN ('STANDARD', 'HIGH'))),
  CONSTRAINT ck_tasks_queue CHECK ((queue <> '')),
  CONSTRAINT ck_tasks_retries CHECK ((retries >= 0)),
  CONSTRAINT ck_tasks_status CHECK ((status IN ('UPLOADED', 'QUEUED', 'RUNNING', 'PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING', 'SUCCEEDED', 'FAILED', 'CANCELED'))),
  CONSTRAINT ck_tasks_task_type CHECK ((task_type <> '')),
  CONSTRAINT ck_tasks_timeout_seconds CHECK ((timeout_seconds > 0))
);
CREATE INDEX idx_tasks_asset_id ON headrace.tasks USING btree (input_asset_id) WHERE (input_asset_id IS NOT NULL);
CREATE INDEX idx_tasks_created_at ON headrace.tasks USING btree (created_at);
CREATE INDEX idx_tasks_deleted_at ON headrace.tasks USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE INDEX idx_tasks_status_updated_at ON headrace.tasks USING btree (status, updated_at DESC);
CREATE INDEX idx_tasks_user_created_at ON headrace.tasks USING btree (user_id DESC, created_at DESC);
CREATE INDEX idx_tasks_user_status_created_at ON headrace.tasks USING btree (user_id, status, created_at DESC);
CREATE TRIGGER tr_tasks_forget_password AFTER UPDATE OF status ON headrace.tasks FOR EACH ROW WHEN (((new.task_type IN ('PDF', 'PPT', 'removal.detect')) AND (new.status IN ('SUCCEEDED', 'FAILED', 'CANCELED')))) EXECUTE FUNCTION headrace.forget_password();
CREATE TRIGGER tr_tasks_status BEFORE UPDATE OF status ON headrace.tasks FOR EACH ROW WHEN ((NOT headrace.task_may_move(old.status, new.status))) EXECUTE FUNCTION headrace.refuse_state_move('status');
CREATE TRIGGER tr_tasks_touch BEFORE UPDATE ON headrace.tasks FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.tasks TO headrace_app;
COMMENT ON TABLE headrace.tasks IS 'One row for each piece of work, whatever its kind.';
COMMENT ON COLUMN headrace.tasks.task_type IS 'The registered type that runs it. IMAGE, VIDEO, PDF and PPT are the media types.';
COMMENT ON COLUMN headrace.tasks.priority IS 'Higher is taken first.';
COMMENT ON COLUMN headrace.tasks.mode IS 'AUTO unless the user marks the place. No column default: it would fill the column of tasks that have no mode.';
COMMENT ON COLUMN headrace.tasks.status IS 'A media task shows its step as its status; every other running task shows RUNNING.';
COMMENT ON COLUMN headrace.tasks.attempt IS 'The attempt that runs or ran last, from 1; 0 before the first. Part of the fence of every later write.';
COMMENT ON COLUMN headrace.tasks.retries IS 'Failed attempts that were followed by another.';
COMMENT ON COLUMN headrace.tasks.run_at IS 'Not before this time.';
COMMENT ON COLUMN headrace.tasks.schedule_uid IS 'The schedule that fired it. No foreign key: a task outlives its schedule.';
COMMENT ON COLUMN headrace.tasks.version IS 'Optimistic lock, and the ETag.';
COMMENT ON COLUMN headrace.tasks.queue_seq IS 'The row of task_queue while there is one.';
COMMENT ON COLUMN headrace.tasks.grace_seconds IS 'From the request to stop until it is killed; null: as its type says.';
COMMENT ON COLUMN headrace.tasks.extension_seconds IS 'How much longer than its timeout an attempt may ask to run; null: not at all.';
COMMENT ON COLUMN headrace.tasks.left_to_type IS 'While no worker has declared its type: which of queue, priority, max_attempts and timeout_seconds were not given and are left to it. Null once it is settled.';
COMMENT ON COLUMN headrace.tasks.idempotency_key IS 'The idempotency key that it was submitted with, for its events; idempotency_keys has those that still count.';

CREATE TABLE headrace.tech_risk_ledger (
  id bigint NOT NULL DEFAULT nextval('headrace.tech_risk_ledger_id_seq'::regclass),
  risk_id varchar(64) NOT NULL,
  category varchar(32) NOT NULL,
  severity varchar(16) NOT NULL,
  status varchar(16) NOT NULL,
  trigger_condition text NOT NULL,
  mitigation_plan text NOT NULL,
  owner varchar(64) NOT NULL,
  refs_json jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  version integer NOT NULL DEFAULT 0,
  CONSTRAINT tech_risk_ledger_pkey PRIMARY KEY (id),
  CONSTRAINT uk_tech_risk_ledger_risk_id UNIQUE (risk_id),
  CONSTRAINT ck_tech_risk_ledger_category CHECK ((category IN ('LICENSE', 'TECHNICAL', 'COST', 'COMPLIANCE'))),
  CONSTRAINT ck_tech_risk_ledger_severity CHECK ((severity IN ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL'))),
  CONSTRAINT ck_tech_risk_ledger_status CHECK ((status IN ('OPEN', 'MITIGATING', 'ACCEPTED', 'CLOSED')))
);
CREATE INDEX idx_tech_risk_ledger_created_at ON headrace.tech_risk_ledger USING btree (created_at DESC, id DESC);
CREATE INDEX idx_tech_risk_ledger_owner ON headrace.tech_risk_ledger USING btree (owner);
CREATE INDEX idx_tech_risk_ledger_refs ON headrace.tech_risk_ledger USING gin (refs_json jsonb_path_ops);
CREATE INDEX idx_tech_risk_ledger_status_severity ON headrace.tech_risk_ledger USING btree (status, severity);
CREATE TRIGGER tr_tech_risk_ledger_touch BEFORE UPDATE ON headrace.tech_risk_ledger FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.tech_risk_ledger TO headrace_app;
COMMENT ON TABLE headrace.tech_risk_ledger IS 'Known risks, who owns them and what is done about them.';
COMMENT ON COLUMN headrace.tech_risk_ledger.refs_json IS 'Where it shows: by convention {"trace_ids": [trace id of audit_logs]} and links.';
COMMENT ON COLUMN headrace.tech_risk_ledger.version IS 'Optimistic lock, and the ETag.';

CREATE TABLE headrace.upload_parts (
  upload_id varchar(64) NOT NULL,
  number integer NOT NULL,
  size_bytes bigint NOT NULL,
  sha256 varchar(64) NOT NULL,
  etag text,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT upload_parts_pkey PRIMARY KEY (upload_id, number),
  CONSTRAINT fk_upload_parts_uploads_upload_id FOREIGN KEY (upload_id) REFERENCES headrace.uploads(id) ON DELETE CASCADE,
  CONSTRAINT ck_upload_parts_number CHECK (((number >= 1) AND (number <= 10000))),
  CONSTRAINT ck_upload_parts_sha256 CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT ck_upload_parts_size_bytes CHECK ((size_bytes > 0))
);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.upload_parts TO headrace_app;
COMMENT ON TABLE headrace.upload_parts IS 'Parts that are stored; in any order.';
COMMENT ON COLUMN headrace.upload_parts.etag IS 'The storage''s tag of the part, where it has one.';

CREATE TABLE headrace.uploads (
  id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  asset_id varchar(64) NOT NULL,
  method varchar(16) NOT NULL,
  origin_name varchar(255) NOT NULL,
  size_bytes bigint NOT NULL,
  sha256 varchar(64),
  part_bytes bigint,
  storage_bucket varchar(63) NOT NULL DEFAULT 'media',
  storage_key text NOT NULL,
  storage_upload_id text,
  strip_location boolean NOT NULL DEFAULT false,
  status varchar(16) NOT NULL DEFAULT 'OPEN',
  error_code varchar(64),
  lease_token varchar(64),
  lease_until timestamptz,
  expire_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT uploads_pkey PRIMARY KEY (id),
  CONSTRAINT uk_uploads_storage_key UNIQUE (storage_key),
  CONSTRAINT fk_uploads_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_uploads_lease CHECK ((((lease_until IS NOT NULL) = (status = 'COMPLETING')) AND ((lease_token IS NOT NULL) = (status = 'COMPLETING')))),
  CONSTRAINT ck_uploads_method CHECK ((method IN ('STREAM', 'PARTS', 'DIRECT'))),
  CONSTRAINT ck_uploads_part_bytes CHECK ((part_bytes > 0)),
  CONSTRAINT ck_uploads_parts CHECK (((part_bytes IS NOT NULL) = (method <> 'STREAM'))),
  CONSTRAINT ck_uploads_sha256 CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT ck_uploads_size_bytes CHECK ((size_bytes >= 0)),
  CONSTRAINT ck_uploads_status CHECK ((status IN ('OPEN', 'COMPLETING', 'COMPLETED', 'ABORTED')))
);
CREATE INDEX idx_uploads_expire_at ON headrace.uploads USING btree (expire_at);
CREATE INDEX idx_uploads_user_created_at ON headrace.uploads USING btree (user_id, created_at DESC, id DESC);
CREATE TRIGGER tr_uploads_status BEFORE UPDATE OF status ON headrace.uploads FOR EACH ROW WHEN ((NOT headrace.upload_may_move(old.status, new.status))) EXECUTE FUNCTION headrace.refuse_state_move('status');
CREATE TRIGGER tr_uploads_touch BEFORE UPDATE ON headrace.uploads FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.uploads TO headrace_app;
COMMENT ON TABLE headrace.uploads IS 'Files on their way in. A row is there before the first byte.';
COMMENT ON COLUMN headrace.uploads.asset_id IS 'The id that the file will have.';
COMMENT ON COLUMN headrace.uploads.size_bytes IS 'As announced, and taken from the quota; 0 if a streamed upload did not say.';
COMMENT ON COLUMN headrace.uploads.sha256 IS 'As announced: the file must have it.';
COMMENT ON COLUMN headrace.uploads.storage_upload_id IS 'The storage''s own name for an upload in parts.';
COMMENT ON COLUMN headrace.uploads.strip_location IS 'Whether the place where a picture was taken is removed from it before it is kept.';
COMMENT ON COLUMN headrace.uploads.lease_until IS 'Whoever completes it has until then; afterwards another may.';
COMMENT ON COLUMN headrace.uploads.expire_at IS 'When an upload that was not completed is swept, and one that was is forgotten.';

CREATE TABLE headrace.usage_days (
  user_id varchar(64) NOT NULL,
  day date NOT NULL,
  used bigint NOT NULL,
  released bigint NOT NULL,
  tasks bigint NOT NULL,
  CONSTRAINT usage_days_pkey PRIMARY KEY (user_id, day)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.usage_days TO headrace_app;
COMMENT ON TABLE headrace.usage_days IS 'What settled holds add up to, for each user and day (UTC) that is over. For display: the ledger is the proof.';

CREATE TABLE headrace.usage_days_horizon (
  only_row boolean NOT NULL DEFAULT true,
  day date NOT NULL,
  CONSTRAINT usage_days_horizon_pkey PRIMARY KEY (only_row),
  CONSTRAINT ck_usage_days_horizon_only_row CHECK (only_row)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.usage_days_horizon TO headrace_app;
COMMENT ON TABLE headrace.usage_days_horizon IS 'The first day that is not in usage_days.';

CREATE TABLE headrace.usage_ledger (
  id varchar(64) NOT NULL,
  period date NOT NULL,
  user_id varchar(64) NOT NULL,
  task_id varchar(64),
  entitlement_id varchar(64),
  hold_id varchar(64),
  consume_unit integer NOT NULL,
  direction varchar(8) NOT NULL,
  status varchar(16) NOT NULL,
  source varchar(32) NOT NULL,
  idempotency_key varchar(128) NOT NULL,
  expires_at timestamptz,
  remark text,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT usage_ledger_pkey PRIMARY KEY (id, period),
  CONSTRAINT uk_usage_ledger_user_idempotency UNIQUE (user_id, idempotency_key, period),
  CONSTRAINT fk_usage_ledger_entitlements_entitlement_id FOREIGN KEY (entitlement_id) REFERENCES headrace.entitlements(id),
  CONSTRAINT fk_usage_ledger_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_usage_ledger_consume_unit CHECK ((consume_unit > 0)),
  CONSTRAINT ck_usage_ledger_direction CHECK ((direction IN ('DEBIT', 'CREDIT'))),
  CONSTRAINT ck_usage_ledger_hold CHECK (
CASE status
    WHEN 'HELD' THEN (hold_id IS NULL)
    WHEN 'RELEASED' THEN ((hold_id IS NOT NULL) AND (expires_at IS NULL))
    ELSE (expires_at IS NULL)
END),
  CONSTRAINT ck_usage_ledger_hold_period CHECK ((period = headrace.typeid_month(hold_id))),
  CONSTRAINT ck_usage_ledger_idempotency_key CHECK (starts_with(idempotency_key, (((((EXTRACT(year FROM period) * (100)::numeric) + EXTRACT(month FROM period)))::integer)::text || ':'))),
  CONSTRAINT ck_usage_ledger_period CHECK ((period = headrace.typeid_month(id))),
  CONSTRAINT ck_usage_ledger_source CHECK ((source IN ('TASK_CREATE', 'TASK_COMPLETE', 'TASK_CANCEL', 'TASK_FAIL', 'MANUAL_ADJUST', 'SUBSCRIPTION_GRANT'))),
  CONSTRAINT ck_usage_ledger_status CHECK ((status IN ('HELD', 'COMMITTED', 'RELEASED')))
) PARTITION BY RANGE (period);
CREATE INDEX idx_usage_ledger_entitlement_created_at ON ONLY headrace.usage_ledger USING btree (entitlement_id, created_at DESC);
CREATE INDEX idx_usage_ledger_expires_at ON ONLY headrace.usage_ledger USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX idx_usage_ledger_rare_source ON ONLY headrace.usage_ledger USING btree (source, created_at DESC, id DESC) WHERE (source IN ('TASK_CANCEL', 'TASK_FAIL', 'MANUAL_ADJUST', 'SUBSCRIPTION_GRANT'));
CREATE INDEX idx_usage_ledger_status_created_at ON ONLY headrace.usage_ledger USING btree (status, created_at DESC);
CREATE INDEX idx_usage_ledger_task_id ON ONLY headrace.usage_ledger USING btree (task_id);
CREATE INDEX idx_usage_ledger_user_created_at ON ONLY headrace.usage_ledger USING btree (user_id, created_at DESC);
CREATE INDEX idx_usage_ledger_user_rare_source ON ONLY headrace.usage_ledger USING btree (user_id, source, created_at DESC, id DESC) WHERE (source IN ('TASK_CANCEL', 'TASK_FAIL', 'MANUAL_ADJUST', 'SUBSCRIPTION_GRANT'));
CREATE UNIQUE INDEX uk_usage_ledger_hold_status ON ONLY headrace.usage_ledger USING btree (hold_id, status, period) WHERE (hold_id IS NOT NULL);
CREATE TRIGGER tr_usage_ledger_refuse_rewriting BEFORE DELETE OR UPDATE ON headrace.usage_ledger FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE TRIGGER tr_usage_ledger_refuse_truncate BEFORE TRUNCATE ON headrace.usage_ledger FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();
GRANT SELECT, INSERT ON headrace.usage_ledger TO headrace_app;
COMMENT ON TABLE headrace.usage_ledger IS 'Every unit held, used and given back: monthly partitions by period, never updated, deleted or truncated.';
COMMENT ON COLUMN headrace.usage_ledger.id IS 'TypeID whose instant is the accounting instant: a settlement takes its hold''s.';
COMMENT ON COLUMN headrace.usage_ledger.period IS 'First day of the accounting month (UTC), the one inside the id.';
COMMENT ON COLUMN headrace.usage_ledger.task_id IS 'The task it is about. No foreign key: the ledger is kept longer than tasks, and would pin them.';
COMMENT ON COLUMN headrace.usage_ledger.hold_id IS 'The HELD row that this one settles, of the same period.';
COMMENT ON COLUMN headrace.usage_ledger.idempotency_key IS 'YYYYMM of the period, a colon, then what makes it one of a kind.';
COMMENT ON COLUMN headrace.usage_ledger.expires_at IS 'When a hold that nobody settles is released by itself.';

CREATE TABLE headrace.users (
  id varchar(64) NOT NULL,
  wechat_openid varchar(128),
  mobile varchar(32),
  status varchar(16) NOT NULL DEFAULT 'ACTIVE',
  username varchar(64),
  email varchar(255),
  password_hash varchar(128),
  role varchar(16) NOT NULL DEFAULT 'USER',
  version integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  last_login_at timestamptz,
  second_factor_at timestamptz,
  CONSTRAINT users_pkey PRIMARY KEY (id),
  CONSTRAINT uk_users_wechat_openid UNIQUE (wechat_openid),
  CONSTRAINT ck_users_credential CHECK ((((username IS NOT NULL) AND (password_hash IS NOT NULL)) OR (wechat_openid IS NOT NULL) OR (status = 'DELETED'))),
  CONSTRAINT ck_users_deleted CHECK (((deleted_at IS NOT NULL) = (status = 'DELETED'))),
  CONSTRAINT ck_users_mobile CHECK ((mobile ~ '^\+[1-9][0-9]{6,14}$')),
  CONSTRAINT ck_users_role CHECK ((role IN ('USER', 'ADMIN'))),
  CONSTRAINT ck_users_status CHECK ((status IN ('ACTIVE', 'SUSPENDED', 'DELETED'))),
  CONSTRAINT ck_users_system CHECK (((id <> 'u_00000000000000000000000000') OR ((status = 'ACTIVE') AND (role = 'ADMIN') AND (password_hash = '!') AND (wechat_openid IS NULL)))),
  CONSTRAINT ck_users_username CHECK (((username <> '') AND (username !~ '[\u0001-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]')))
);
CREATE INDEX idx_users_admins ON headrace.users USING btree (created_at DESC, id DESC) WHERE (role = 'ADMIN');
CREATE INDEX idx_users_created_at ON headrace.users USING btree (created_at DESC, id DESC);
CREATE INDEX idx_users_email ON headrace.users USING btree (lower(email)) WHERE (email IS NOT NULL);
CREATE INDEX idx_users_status_created_at ON headrace.users USING btree (status, created_at DESC);
CREATE UNIQUE INDEX idx_users_username ON headrace.users USING btree (lower(username));
CREATE TRIGGER tr_users_keep_system BEFORE DELETE ON headrace.users FOR EACH ROW WHEN ((old.id = 'u_00000000000000000000000000')) EXECUTE FUNCTION headrace.refuse_deleting_system_user();
CREATE TRIGGER tr_users_touch BEFORE UPDATE ON headrace.users FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.users TO headrace_app;
COMMENT ON TABLE headrace.users IS 'People, and the product itself (u_ and 26 zeros).';
COMMENT ON COLUMN headrace.users.username IS 'Unique whatever the case. Null for a WeChat user and for a deleted one.';
COMMENT ON COLUMN headrace.users.password_hash IS 'Argon2id in PHC form. ! is no password at all.';
COMMENT ON COLUMN headrace.users.version IS 'Optimistic lock, and the ETag.';
COMMENT ON COLUMN headrace.users.second_factor_at IS 'When the second factor was turned on; NULL: a login takes the password alone.';

CREATE TABLE headrace.webhook_deliveries (
  id bigint NOT NULL DEFAULT nextval('headrace.webhook_deliveries_id_seq'::regclass),
  period date NOT NULL,
  delivery_id varchar(64) NOT NULL,
  endpoint_id varchar(64) NOT NULL,
  event_id varchar(64) NOT NULL,
  event_type varchar(128) NOT NULL,
  attempt integer NOT NULL,
  request_headers jsonb,
  request_body jsonb,
  response_status integer,
  response_body text,
  duration_ms integer,
  status varchar(16) NOT NULL,
  next_retry_at timestamptz DEFAULT now(),
  delivered_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  error text,
  CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id, period),
  CONSTRAINT uk_webhook_delivery_id UNIQUE (delivery_id, period),
  CONSTRAINT uk_webhook_endpoint_event_attempt UNIQUE (endpoint_id, event_id, attempt, period),
  CONSTRAINT fk_webhook_deliveries_endpoints_endpoint_id FOREIGN KEY (endpoint_id) REFERENCES headrace.webhook_endpoints(id) ON DELETE CASCADE,
  CONSTRAINT ck_webhook_deliveries_attempt CHECK ((attempt >= 1)),
  CONSTRAINT ck_webhook_deliveries_delivery_period CHECK ((period = headrace.typeid_month(delivery_id))),
  CONSTRAINT ck_webhook_deliveries_duration_ms CHECK ((duration_ms >= 0)),
  CONSTRAINT ck_webhook_deliveries_event_period CHECK ((period = headrace.typeid_month(event_id))),
  CONSTRAINT ck_webhook_deliveries_status CHECK ((status IN ('PENDING', 'SUCCESS', 'FAILED', 'RETRYING', 'DEAD')))
) PARTITION BY RANGE (period);
CREATE INDEX idx_webhook_deliveries_dead ON ONLY headrace.webhook_deliveries USING btree (id DESC) WHERE (status = 'DEAD');
CREATE INDEX idx_webhook_deliveries_due ON ONLY headrace.webhook_deliveries USING btree (next_retry_at) WHERE (status IN ('PENDING', 'FAILED', 'RETRYING'));
CREATE INDEX idx_webhook_deliveries_endpoint_id ON ONLY headrace.webhook_deliveries USING btree (endpoint_id, id DESC);
CREATE INDEX idx_webhook_deliveries_endpoint_status_next_retry ON ONLY headrace.webhook_deliveries USING btree (endpoint_id, status, next_retry_at);
CREATE INDEX idx_webhook_deliveries_event_id ON ONLY headrace.webhook_deliveries USING btree (event_id);
CREATE TRIGGER tr_webhook_deliveries_status BEFORE UPDATE OF status ON headrace.webhook_deliveries FOR EACH ROW WHEN ((NOT headrace.delivery_may_move(old.status, new.status))) EXECUTE FUNCTION headrace.refuse_state_move('status');
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.webhook_deliveries TO headrace_app;
COMMENT ON TABLE headrace.webhook_deliveries IS 'Each attempt to send an event to an endpoint: monthly partitions by the event''s month.';
COMMENT ON COLUMN headrace.webhook_deliveries.id IS 'A number from one sequence; what names a delivery is delivery_id.';
COMMENT ON COLUMN headrace.webhook_deliveries.period IS 'First day of the month (UTC) inside event_id and delivery_id.';
COMMENT ON COLUMN headrace.webhook_deliveries.delivery_id IS 'TypeID made with its event''s instant, also for an attempt weeks later.';
COMMENT ON COLUMN headrace.webhook_deliveries.event_id IS 'The event. No foreign key: deliveries are kept longer than published events, and would pin them.';
COMMENT ON COLUMN headrace.webhook_deliveries.next_retry_at IS 'PENDING: not before this time. RETRYING: when the next attempt is due; null once it has begun.';
COMMENT ON COLUMN headrace.webhook_deliveries.error IS 'Why there is no answer, or why no further attempt is made.';

CREATE TABLE headrace.webhook_endpoints (
  id varchar(64) NOT NULL,
  user_id varchar(64) NOT NULL,
  name varchar(64) NOT NULL,
  url text NOT NULL,
  status varchar(16) NOT NULL,
  secret_ciphertext text NOT NULL,
  secret_hint varchar(16),
  secret_previous_ciphertext text,
  secret_rotated_at timestamptz,
  subscribed_events jsonb NOT NULL DEFAULT '[]'::jsonb,
  timeout_ms integer NOT NULL DEFAULT 5000,
  max_retries integer NOT NULL DEFAULT 6,
  allow_ips jsonb,
  failing_since timestamptz,
  version integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  task_types jsonb,
  ordered boolean NOT NULL DEFAULT false,
  every_user boolean NOT NULL DEFAULT false,
  status_reason varchar(32),
  CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id),
  CONSTRAINT fk_webhook_endpoints_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users(id),
  CONSTRAINT ck_webhook_endpoints_allow_ips CHECK ((jsonb_typeof(allow_ips) = 'array')),
  CONSTRAINT ck_webhook_endpoints_max_retries CHECK (((max_retries >= 0) AND (max_retries <= 10))),
  CONSTRAINT ck_webhook_endpoints_status CHECK ((status IN ('ACTIVE', 'PAUSED', 'DISABLED'))),
  CONSTRAINT ck_webhook_endpoints_status_reason CHECK ((status_reason IN ('by_hand', 'failing', 'gone'))),
  CONSTRAINT ck_webhook_endpoints_subscribed_events CHECK ((jsonb_typeof(subscribed_events) = 'array')),
  CONSTRAINT ck_webhook_endpoints_task_types CHECK ((jsonb_typeof(task_types) = 'array')),
  CONSTRAINT ck_webhook_endpoints_timeout_ms CHECK (((timeout_ms >= 1000) AND (timeout_ms <= 30000)))
);
CREATE INDEX idx_webhook_endpoints_every_user ON headrace.webhook_endpoints USING btree (id) WHERE every_user;
CREATE INDEX idx_webhook_endpoints_user_status ON headrace.webhook_endpoints USING btree (user_id, status);
CREATE UNIQUE INDEX uk_webhook_endpoints_user_url_active ON headrace.webhook_endpoints USING btree (user_id, url) WHERE (deleted_at IS NULL);
CREATE TRIGGER tr_webhook_endpoints_touch BEFORE UPDATE ON headrace.webhook_endpoints FOR EACH ROW WHEN ((NOT (new.updated_at IS DISTINCT FROM old.updated_at))) EXECUTE FUNCTION headrace.touch_updated_at();
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.webhook_endpoints TO headrace_app;
COMMENT ON TABLE headrace.webhook_endpoints IS 'Where a user wants events sent.';
COMMENT ON COLUMN headrace.webhook_endpoints.secret_hint IS 'The last characters, so that a person can tell secrets apart.';
COMMENT ON COLUMN headrace.webhook_endpoints.secret_previous_ciphertext IS 'Signs beside the new one for a while after a rotation.';
COMMENT ON COLUMN headrace.webhook_endpoints.subscribed_events IS '[event type]';
COMMENT ON COLUMN headrace.webhook_endpoints.allow_ips IS '[address or network]: narrows where the URL may lead. Null: any public address.';
COMMENT ON COLUMN headrace.webhook_endpoints.failing_since IS 'The first of the failures in a row; null after a success.';
COMMENT ON COLUMN headrace.webhook_endpoints.version IS 'Optimistic lock, and the ETag.';
COMMENT ON COLUMN headrace.webhook_endpoints.task_types IS '[task type]: of events of tasks, only those of these types. Null: of every type.';
COMMENT ON COLUMN headrace.webhook_endpoints.ordered IS 'Events of one aggregate are sent one after the other: the next when the one before is through or given up.';
COMMENT ON COLUMN headrace.webhook_endpoints.every_user IS 'An administrator''s endpoint for everybody''s events.';
COMMENT ON COLUMN headrace.webhook_endpoints.status_reason IS 'Why it is not ACTIVE: by_hand, failing (for days), gone (it answered 410).';

CREATE TABLE headrace.webhook_health (
  endpoint_id varchar(64) NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  blocked_until timestamptz,
  last_failure_at timestamptz,
  last_error text,
  failed_trials integer NOT NULL DEFAULT 0,
  CONSTRAINT webhook_health_pkey PRIMARY KEY (endpoint_id),
  CONSTRAINT fk_webhook_health_endpoints_endpoint_id FOREIGN KEY (endpoint_id) REFERENCES headrace.webhook_endpoints(id) ON DELETE CASCADE,
  CONSTRAINT ck_webhook_health_failed_trials CHECK ((failed_trials >= 0)),
  CONSTRAINT ck_webhook_health_failures CHECK ((failures >= 0))
) WITH (fillfactor=80);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.webhook_health TO headrace_app;
COMMENT ON TABLE headrace.webhook_health IS 'How endpoints fare: failures in a row, and until when nothing is sent there.';
COMMENT ON COLUMN headrace.webhook_health.failures IS 'In a row; 0 after a success.';
COMMENT ON COLUMN headrace.webhook_health.blocked_until IS 'The breaker is open, or the endpoint asked for a pause.';
COMMENT ON COLUMN headrace.webhook_health.failed_trials IS 'Tries after a pause of the breaker that failed, in a row: each doubles the next pause.';

CREATE TABLE headrace.webhook_queue (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  endpoint_id varchar(64) NOT NULL,
  delivery_id varchar(64) NOT NULL,
  period date NOT NULL,
  attempt integer NOT NULL DEFAULT 1,
  is_pending boolean NOT NULL DEFAULT true,
  failures integer NOT NULL DEFAULT 0,
  losses integer NOT NULL DEFAULT 0,
  aggregate varchar(160),
  due_at timestamptz NOT NULL DEFAULT now(),
  leased_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT webhook_queue_pkey PRIMARY KEY (id),
  CONSTRAINT uk_webhook_queue_delivery_id UNIQUE (delivery_id),
  CONSTRAINT fk_webhook_queue_endpoints_endpoint_id FOREIGN KEY (endpoint_id) REFERENCES headrace.webhook_endpoints(id) ON DELETE CASCADE,
  CONSTRAINT ck_webhook_queue_attempt CHECK ((attempt >= 1)),
  CONSTRAINT ck_webhook_queue_failures CHECK ((failures >= 0)),
  CONSTRAINT ck_webhook_queue_losses CHECK ((losses >= 0))
) WITH (autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX idx_webhook_queue_aggregate ON headrace.webhook_queue USING btree (endpoint_id, aggregate, id) WHERE (aggregate IS NOT NULL);
CREATE INDEX idx_webhook_queue_leased ON headrace.webhook_queue USING btree (leased_until) WHERE (leased_until IS NOT NULL);
CREATE INDEX idx_webhook_queue_ready ON headrace.webhook_queue USING btree (endpoint_id, due_at, id) WHERE (leased_until IS NULL);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.webhook_queue TO headrace_app;
COMMENT ON TABLE headrace.webhook_queue IS 'Deliveries that are not over: what senders claim.';
COMMENT ON COLUMN headrace.webhook_queue.delivery_id IS 'The attempt: the next one if is_pending, otherwise the last.';
COMMENT ON COLUMN headrace.webhook_queue.is_pending IS 'Whether the row of the next attempt is in webhook_deliveries already.';
COMMENT ON COLUMN headrace.webhook_queue.losses IS 'Attempts whose sender died or was too slow: nobody knows whether they arrived.';
COMMENT ON COLUMN headrace.webhook_queue.aggregate IS 'Type and id of what the event is about, at an endpoint that wants order; null elsewhere.';
COMMENT ON COLUMN headrace.webhook_queue.leased_until IS 'While a sender has it: when it may be taken over. The fence of what the sender writes, too.';

CREATE TABLE headrace.workers (
  number integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  id varchar(64) NOT NULL,
  host varchar(255) NOT NULL,
  pid integer NOT NULL,
  queues text[],
  types text[] NOT NULL,
  labels jsonb NOT NULL DEFAULT '{}'::jsonb,
  concurrency integer NOT NULL,
  lease interval NOT NULL,
  running integer NOT NULL DEFAULT 0,
  finished bigint NOT NULL DEFAULT 0,
  asleep boolean NOT NULL DEFAULT false,
  started_at timestamptz NOT NULL DEFAULT now(),
  heartbeat_at timestamptz NOT NULL DEFAULT now(),
  stopping_at timestamptz,
  ended_at timestamptz,
  ending varchar(16),
  slots jsonb NOT NULL DEFAULT '{}'::jsonb,
  CONSTRAINT workers_pkey PRIMARY KEY (number),
  CONSTRAINT uk_workers_id UNIQUE (id),
  CONSTRAINT ck_workers_concurrency CHECK ((concurrency > 0)),
  CONSTRAINT ck_workers_ended CHECK (((ended_at IS NULL) = (ending IS NULL))),
  CONSTRAINT ck_workers_ending CHECK ((ending IN ('STOPPED', 'DEAD')))
) WITH (fillfactor=50);
CREATE INDEX idx_workers_alive ON headrace.workers USING btree (number) WHERE (ended_at IS NULL);
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.workers TO headrace_app;
COMMENT ON TABLE headrace.workers IS 'Worker processes. The heartbeat is the lease of everything a worker holds; by the database''s clock.';
COMMENT ON COLUMN headrace.workers.number IS 'What the narrow queue row names the worker by.';
COMMENT ON COLUMN headrace.workers.queues IS 'Null takes every queue.';
COMMENT ON COLUMN headrace.workers.asleep IS 'Whether a submitter should send a wake-up.';
COMMENT ON COLUMN headrace.workers.slots IS 'Slots by isolation: how many, how many of them run a task, and for which types.';

CREATE VIEW headrace.audit_logs AS
 SELECT seq AS id,
    (
        CASE
            WHEN (("user" ->> 'type') = 'user') THEN ("user" ->> 'uid')
            ELSE NULL::text
        END)::varchar(64) AS user_id,
    actor_type,
    (("user" ->> 'uid'))::varchar(64) AS actor_id,
    action,
    (resource_type)::varchar(32) AS target_type,
    ((resource ->> 'identifier'))::varchar(64) AS target_id,
    (client_ip)::inet AS ip,
    user_agent,
    trace_id,
    (request_id)::varchar(64) AS request_id,
    jsonb_strip_nulls(jsonb_build_object('event_id', id, 'username', ("user" -> 'username'), 'resource', (resource -> 'data'), 'diff', diff_object, 'data', data, 'request_method', request_method, 'space_path', space_path)) AS detail_json,
    created_at
   FROM headrace.audit_events;
GRANT SELECT ON headrace.audit_logs TO headrace_app;
COMMENT ON VIEW headrace.audit_logs IS 'The trail under the watermark service''s names. Written only through audit_events.';
COMMENT ON COLUMN headrace.audit_logs.user_id IS 'Null when a service or nobody known acted.';
COMMENT ON COLUMN headrace.audit_logs.detail_json IS 'What the trail knows beyond these columns: event_id, username, resource, diff, data, request_method, space_path.';

-- Whether a deletion may go from one status to another (or stay).
-- headrace.account_deletion_may_move(source text, target text) RETURNS boolean
--   in functions/account_deletion_may_move.sql

-- Gives a new partition what PostgreSQL does not pass on: names of indexes, TRUNCATE triggers, rights, the owner.
-- headrace.adopt_partition(parent regclass, partition regclass) RETURNS void
--   in functions/adopt_partition.sql; for the owner alone

-- Gives a route to waiting rows of programs of an earlier release; gives how many.
-- headrace.adopt_queue_rows(most integer) RETURNS integer
--   in functions/adopt_queue_rows.sql

-- Writes quota.reached for users who reach 80 or 100 percent of their quota by these units.
-- headrace.alert_quota(entitlement_ids text[], user_ids text[], units integer[]) RETURNS void
--   in functions/alert_quota.sql

-- Whether an archive may go from one state to another (or stay).
-- headrace.archive_may_move(source text, target text) RETURNS boolean
--   in functions/archive_may_move.sql

-- Whether a file may go from one state to another (or stay).
-- headrace.asset_may_move(source text, target text) RETURNS boolean
--   in functions/asset_may_move.sql

-- The numbers of a lane and its route, made if there are none; to be remembered only after the commit, and for an hour at most (see retire_lanes).
-- headrace.assign_lane(queue text, task_type text, user_id text, limit_key text, labels jsonb, only_once boolean, OUT lane_id integer, OUT route_id integer) RETURNS record
--   in functions/assign_lane.sql

-- Notes the tasks of runs that waited for a slot.
-- headrace.attach_tasks(uids text[], task_ids text[]) RETURNS void
--   in functions/attach_tasks.sql

-- Waits until every transaction is over that has decided which events to write; false if that took too long.
-- headrace.await_event_writers(most interval) RETURNS boolean
--   in functions/await_event_writers.sql

-- Fills a column in batches by id: CALL headrace.backfill('headrace.things', 'tenant = owner', 'tenant IS NULL').
-- headrace.backfill(IN target regclass, IN assignment text, IN missing text, IN batch integer DEFAULT 1000)
--   in functions/backfill.sql; for the owner alone

-- Refuses what headrace.submit cannot take.
-- headrace.check_submission(type text, payload jsonb, title text, queue text, priority integer, run_at timestamptz, max_attempts integer, timeout_seconds integer, limit_key text, labels jsonb, idempotency_key text) RETURNS void
--   in functions/check_submission.sql

-- Leases the first new events of aggregates to a relay.
-- headrace.claim_events(at timestamptz, most integer, lease interval, floor timestamptz) RETURNS TABLE(id bigint, retry_count integer, next_retry_at timestamptz, leased boolean, due_at timestamptz)
--   in functions/claim_events.sql

-- Claims what is due in the highest priority that has something, in one round trip.
-- headrace.claim_first(worker_number integer, queues text[], types text[], worker_labels jsonb, most integer, startable integer) RETURNS TABLE(seq bigint, run_at timestamptz, lane_id integer, precedence integer, attempt integer, task_id varchar, claimed_at timestamptz, user_id varchar, task_type varchar, payload jsonb, retries integer, max_attempts integer, timeout_seconds integer, trace_id varchar, current_step varchar, schedule_uid varchar, grace_seconds integer, extension_seconds integer)
--   in functions/claim_first.sql

-- headrace.claim_submission_key(user_id text, idempotency_key text, digest text, task_id text) RETURNS text
--   in functions/claim_submission_key.sql

-- Claims waiting tasks of these lanes for a worker.
-- headrace.claim_tasks(worker_number integer, lanes integer[], precedences integer[], floor_run_at timestamptz[], floor_seq bigint[], shares integer[], most integer) RETURNS TABLE(seq bigint, run_at timestamptz, lane_id integer, precedence integer, attempt integer, task_id varchar, claimed_at timestamptz, user_id varchar, task_type varchar, payload jsonb, retries integer, max_attempts integer, timeout_seconds integer, trace_id varchar, current_step varchar, schedule_uid varchar, grace_seconds integer, extension_seconds integer)
--   in functions/claim_tasks.sql

-- How many runs of each schedule wait for a slot, counted up to so many.
-- headrace.count_waiting(uids text[], most integer[]) RETURNS TABLE(uid text, waiting bigint)
--   in functions/count_waiting.sql

-- Makes the missing monthly partitions from the month of first to the month of last; says how many. For the owner; run it as often as you like.
-- headrace.create_month_partitions(parent regclass, first date, last date) RETURNS integer
--   in functions/create_month_partitions.sql; for the owner alone

-- Whether an attempt to deliver may go from one state to another (or stay).
-- headrace.delivery_may_move(source text, target text) RETURNS boolean
--   in functions/delivery_may_move.sql

-- Takes an expired month out of its table and begins its archive; refuses one that must stay. Gives how long the table has been locked so far.
-- headrace.detach_month(parent text, month date, archive_id text, wait_ms integer DEFAULT 50) RETURNS interval
--   in functions/detach_month.sql

-- Drops the table of a month whose archive was verified since it was written; false when it was not.
-- headrace.drop_month(archive_id text, digest text, wait_ms integer DEFAULT 50) RETURNS boolean
--   in functions/drop_month.sql

-- Writes an outbox event for each change of a task with subscribers, in the order given; always: for each.
-- headrace.emit_task_events(event_ids text[], event_types text[], task_ids text[], attempts integer[], request_ids text[] DEFAULT NULL::text[], always boolean DEFAULT false) RETURNS void
--   in functions/emit_task_events.sql

-- The sessions whose open transactions keep these entitlements locked.
-- headrace.entitlement_lockers(entitlement_ids text[]) RETURNS jsonb
--   in functions/entitlement_lockers.sql

-- Whether a run may go from one state to another (or stay).
-- headrace.execution_may_move(source text, target text) RETURNS boolean
--   in functions/execution_may_move.sql

-- Ends a waiting task whose type, once declared, cannot take it.
-- headrace.fail_unsettled(place bigint, task_id text, reason text, emits_events boolean, emits_always boolean) RETURNS void
--   in functions/fail_unsettled.sql

-- headrace.fence(seq bigint, attempt integer) RETURNS bigint
--   in functions/fence.sql

-- headrace.fences(seqs bigint[], attempts integer[]) RETURNS bigint[]
--   in functions/fences.sql

-- A run is its schedule's owner's.
-- headrace.fill_execution_owner() RETURNS trigger
--   in functions/fill_execution_owner.sql

-- Writes the end of tasks that a worker holds; gives those that it did hold. Without statuses all have succeeded.
-- headrace.finish_tasks(worker_number integer, worker_name text, seqs bigint[], attempts integer[], statuses text[], results jsonb[], error_codes text[], error_messages text[], emits boolean DEFAULT false, told bigint[] DEFAULT '{}'::bigint[], unsure boolean DEFAULT false) RETURNS SETOF bigint
--   in functions/finish_tasks.sql

-- Moves the runs of schedules together with their tasks.
-- headrace.follow_executions(task_ids text[], schedule_uids text[], workers text[], starts timestamptz[], timeouts integer[], states text[], agains boolean[], fresh_uids text[], results text[], messages text[], stacks text[]) RETURNS SETOF text
--   in functions/follow_executions.sql

-- Trigger: deletes what opens the document of a task that ends.
-- headrace.forget_password() RETURNS trigger
--   in functions/forget_password.sql

-- headrace.free_slots(scope text, name text, most integer) RETURNS integer
--   in functions/free_slots.sql

-- Keeps interests in events from being added until this transaction ends.
-- headrace.hold_event_interests() RETURNS void
--   in functions/hold_event_interests.sql

-- Holds what these tasks cost from their users' entitlements; with again for tasks that were held for before.
-- headrace.hold_units(task_ids text[], user_ids text[], units integer[], hold_ids text[] DEFAULT NULL::text[], again boolean DEFAULT false) RETURNS void
--   in functions/hold_units.sql

-- Holds what these tasks cost; waits no longer than given for locked units.
-- headrace.hold_units_within(wait interval, task_ids text[], user_ids text[], units integer[], hold_ids text[], again boolean) RETURNS void
--   in functions/hold_units_within.sql

-- Writes down runs that were fired, those that were refused as failed.
-- headrace.insert_executions(schedule_uids text[], user_ids text[], names text[], types text[], uids text[], task_ids text[], dues timestamptz[], refusals text[], trigger text, triggered_by text, at timestamptz) RETURNS void
--   in functions/insert_executions.sql

-- How many runs of each schedule take up a slot, whether others wait for one, and which due times between two have fired.
-- headrace.inspect_schedules(uids text[], first_dues timestamptz[], last_dues timestamptz[]) RETURNS TABLE(uid text, active bigint, waiting boolean, fired timestamptz[])
--   in functions/inspect_schedules.sql

-- A Unix millisecond as an instant, exactly.
-- headrace.instant_of_millis(millis bigint) RETURNS timestamptz
--   in functions/instant_of_millis.sql

-- What an audit event must be: true, or an error that names the rule which is broken.
-- headrace.is_audit_event(id text, millis bigint, created_at timestamptz, action text, resource_type text, resource jsonb, principal jsonb, diff_object jsonb, client_ip text) RETURNS boolean
--   in functions/is_audit_event.sql

-- Keeps the answer to a request with an idempotency key.
-- headrace.keep_answer(answer jsonb) RETURNS void
--   in functions/keep_answer.sql

-- The number of a lane, made if it is new, for programs of an earlier release.
-- headrace.lane(queue text, task_type text, user_id text, limit_key text, labels jsonb, only_once boolean) RETURNS integer
--   in functions/lane.sql

-- The ten letters of a TypeID that hold this Unix millisecond.
-- headrace.letters_of_millis(millis bigint) RETURNS text
--   in functions/letters_of_millis.sql

-- The limit key of a task, by the limit_key of its type; null for none.
-- headrace.limit_key(rule text, payload jsonb, user_id text) RETURNS text
--   in functions/limit_key.sql

-- Locks what settling these tasks writes to; waits for it no longer than given.
-- headrace.lock_held_units(task_ids text[], wait interval) RETURNS void
--   in functions/lock_held_units.sql

-- Whether a lock may go from one state to another (or stay).
-- headrace.lock_may_move(source text, target text) RETURNS boolean
--   in functions/lock_may_move.sql

-- Marks a request with an idempotency key as running until the transaction ends.
-- headrace.lock_request(request bigint) RETURNS void
--   in functions/lock_request.sql

-- Locks the entitlements of these users that no other transaction has locked; gives the users whose units are locked.
-- headrace.lock_units_of(user_ids text[]) RETURNS SETOF text
--   in functions/lock_units_of.sql

-- Makes the first month that is missing, from this one to three ahead; null when none is.
-- headrace.make_month_ahead(parent regclass) RETURNS date
--   in functions/make_month_ahead.sql

-- Whether a user may submit tasks of a type, by the submit of the type.
-- headrace.may_submit(rule text, user_id text) RETURNS boolean
--   in functions/may_submit.sql

-- A fresh TypeID whd_… with the instant of an event.
-- headrace.new_delivery_id(event_id text) RETURNS text
--   in functions/new_delivery_id.sql

-- A fresh TypeID by the database's clock.
-- headrace.new_id(prefix text) RETURNS text
--   in functions/new_id.sql

-- Notes what was written to the archive of a detached month; false when the month is in another state.
-- headrace.note_archived_month(archive_id text, rows_written bigint, least_id text, greatest_id text, least_at timestamptz, greatest_at timestamptz, bytes bigint, digest text) RETURNS boolean
--   in functions/note_archived_month.sql

-- Notes that the file of an archived month was read back and found right; false when another file was written meanwhile.
-- headrace.note_verified_month(archive_id text, digest text) RETURNS boolean
--   in functions/note_verified_month.sql

-- Trigger: notifies headrace_configs with the key that changed.
-- headrace.notify_config_change() RETURNS trigger
--   in functions/notify_config_change.sql

-- Marks a request with an idempotency key as running until the transaction ends, unless it was answered before.
-- headrace.open_request(request bigint, key jsonb) RETURNS void
--   in functions/open_request.sql

-- Whether an event may go from one state to another (or stay).
-- headrace.outbox_event_may_move(source text, target text) RETURNS boolean
--   in functions/outbox_event_may_move.sql

-- What of a payload does not fit the payload_check of its type; null if it fits.
-- headrace.payload_fault(schema jsonb, value jsonb, root jsonb DEFAULT NULL::jsonb, place text DEFAULT '', depth integer DEFAULT 0) RETURNS text
--   in functions/payload_fault.sql

-- Whether an order may go from one status to another (or stay).
-- headrace.payment_order_may_move(source text, target text) RETURNS boolean
--   in functions/payment_order_may_move.sql

-- How many tasks of a user run at once, by their plan.
-- headrace.plan_concurrency(of_user text) RETURNS integer
--   in functions/plan_concurrency.sql

-- Marks events that a relay still has as published; gives those.
-- headrace.publish_events(events bigint[], heads bigint[], leased_until timestamptz) RETURNS SETOF bigint
--   in functions/publish_events.sql

-- Trigger: the product's own account stays.
-- headrace.refuse_deleting_system_user() RETURNS trigger
--   in functions/refuse_deleting_system_user.sql

-- Trigger: a seal follows the last one, over numbers that were given out.
-- headrace.refuse_loose_seal() RETURNS trigger
--   in functions/refuse_loose_seal.sql

-- Trigger: refuses an event that is not of now, unless the owner brings it.
-- headrace.refuse_other_time() RETURNS trigger
--   in functions/refuse_other_time.sql

-- Trigger: refuses UPDATE, DELETE and TRUNCATE.
-- headrace.refuse_rewriting() RETURNS trigger
--   in functions/refuse_rewriting.sql

-- Trigger: refuses a state change that is not drawn. Argument: the column.
-- headrace.refuse_state_move() RETURNS trigger
--   in functions/refuse_state_move.sql

-- Makes delayed tasks whose run_at has come claimable; gives how many.
-- headrace.release_delayed(most integer) RETURNS integer
--   in functions/release_delayed.sql

-- Puts tasks that a worker holds back into the queue.
-- headrace.requeue_tasks(worker_number integer, seqs bigint[], attempts integer[], outcomes text[], delays interval[], spends boolean[], error_codes text[], error_messages text[]) RETURNS TABLE(seq bigint, task_id varchar)
--   in functions/requeue_tasks.sql

-- Retires lanes without tasks and deletes those that were retired a day ago; gives how many of both.
-- headrace.retire_lanes(idle_for interval, most integer) RETURNS integer
--   in functions/retire_lanes.sql

-- Has the file of a month written once more while its rows are still in the database; false when they are not.
-- headrace.rewrite_month(archive_id text) RETURNS boolean
--   in functions/rewrite_month.sql

-- The number of a route, created if there is none.
-- headrace.route(queue text, task_type text, labels jsonb) RETURNS integer
--   in functions/route.sql

-- Commits or releases what is held for tasks that have ended so; used is what they used of it, null for all.
-- headrace.settle_holds(task_ids text[], statuses text[], used integer[]) RETURNS void
--   in functions/settle_holds.sql

-- Gives waiting tasks that were submitted before their type was declared what the type says; gives how many.
-- headrace.settle_tasks(types text[], most integer) RETURNS integer
--   in functions/settle_tasks.sql

-- The id of the entry that commits or releases a hold.
-- headrace.settlement_id(hold_id text, status text) RETURNS text
--   in functions/settlement_id.sql

-- Locks these claims of a worker and gives those whose start is on the task's row.
-- headrace.started_tasks(worker_number integer, seqs bigint[], attempts integer[]) RETURNS SETOF bigint
--   in functions/started_tasks.sql

-- The request_hash of a submission in idempotency_keys.
-- headrace.submission_digest(type text, payload jsonb, title text, queue text, priority integer, run_at timestamptz, max_attempts integer, timeout_seconds integer, limit_key text, labels jsonb, schedule_uid text) RETURNS text
--   in functions/submission_digest.sql

-- Submits a task in the caller's transaction and gives its id; with an idempotency key the same one again. What is left out is as the type says.
-- headrace.submit(type text, payload jsonb DEFAULT '{}'::jsonb, user_id text DEFAULT NULL::text, title text DEFAULT NULL::text, queue text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, run_at timestamptz DEFAULT NULL::timestamptz, max_attempts integer DEFAULT NULL::integer, timeout_seconds integer DEFAULT NULL::integer, limit_key text DEFAULT NULL::text, labels jsonb DEFAULT NULL::jsonb, trace_id text DEFAULT NULL::text, idempotency_key text DEFAULT NULL::text, schedule_uid text DEFAULT NULL::text, unknown_type text DEFAULT 'refuse', trusted boolean DEFAULT false, payload_checked boolean DEFAULT false) RETURNS text
--   in functions/submit.sql

-- Whether a subscription may go from one status to another (or stay).
-- headrace.subscription_may_move(source text, target text) RETURNS boolean
--   in functions/subscription_may_move.sql

-- Runs that must make room for later ones of their schedule and were not asked to stop yet; of these schedules, or of all.
-- headrace.superseded_executions(uids text[], most integer) RETURNS TABLE(uid text, execution_uid text, task_id text)
--   in functions/superseded_executions.sql

-- Lanes with waiting tasks that a worker of these queues, types and labels can take from; wait_seconds > 0 for one that is not due yet.
-- headrace.survey_lanes(queues text[], types text[], worker_labels jsonb, after_precedence integer, after_lane integer, most integer) RETURNS TABLE(precedence integer, lane_id integer, run_at timestamptz, seq bigint, only_once boolean, wait_seconds double precision)
--   in functions/survey_lanes.sql

-- Whether a task may go from one status to another (or stay).
-- headrace.task_may_move(source text, target text) RETURNS boolean
--   in functions/task_may_move.sql

-- Trigger: moves updated_at.
-- headrace.touch_updated_at() RETURNS trigger
--   in functions/touch_updated_at.sql

-- The Unix millisecond inside a TypeID.
-- headrace.typeid_millis(id text) RETURNS bigint
--   in functions/typeid_millis.sql

-- The first day (UTC) of the month inside a TypeID.
-- headrace.typeid_month(id text) RETURNS date
--   in functions/typeid_month.sql

-- Returns claimed tasks that were not started to the queue, and gives them.
-- headrace.unclaim_tasks(worker_number integer, seqs bigint[], attempts integer[]) RETURNS SETOF bigint
--   in functions/unclaim_tasks.sql

-- The labels of a lane whose tasks wait for their type to be declared. No worker has such a label, and no task can ask for it: it has a space.
-- headrace.undeclared() RETURNS jsonb
--   in functions/undeclared.sql

-- What a task costs, by the units of its type.
-- headrace.units(rule text, payload jsonb) RETURNS integer
--   in functions/units.sql

-- Drops one foreign key of an archived month before its table is dropped; null when it has none. Gives how long the table that it refers to has been locked so far.
-- headrace.unlink_month(archive_id text, wait_ms integer DEFAULT 50) RETURNS interval
--   in functions/unlink_month.sql

-- Whether an upload may go from one state to another (or stay).
-- headrace.upload_may_move(source text, target text) RETURNS boolean
--   in functions/upload_may_move.sql

-- Runs that wait for a slot, as many as there are slots.
-- headrace.waiting_executions(uids text[]) RETURNS TABLE(uid text, execution_uid text, scheduled_at timestamptz)
--   in functions/waiting_executions.sql

-- Tells a relay that sleeps that there are events.
-- headrace.wake_relays() RETURNS void
--   in functions/wake_relays.sql

-- Whether events of these types have a subscriber; that stays true until the transaction ends.
-- headrace.wants_task_events(event_types text[]) RETURNS boolean
--   in functions/wants_task_events.sql

-- Why a month is too young to be retired; null when it is old enough. For the functions that retire months.
-- headrace.why_month_is_young(parent text, month date) RETURNS text
--   in functions/why_month_is_young.sql; for the owner alone

-- Why a month of a table may not be retired; null when it may. For the functions that retire months.
-- headrace.why_month_stays(parent text, month date) RETURNS text
--   in functions/why_month_stays.sql; for the owner alone

-- Writes an event of the audit trail as headrace.audit.record has made it, and gives its id.
-- headrace.write_audit_event(event jsonb) RETURNS text
--   in functions/write_audit_event.sql

-- Writes the events of tasks that have subscribers, or all of them.
-- headrace.write_task_events(event_ids text[], event_types text[], task_ids text[], attempts integer[], request_ids text[], always boolean) RETURNS void
--   in functions/write_task_events.sql

-- For operators: settings that change while the product runs, and the risks that are known.

CREATE TABLE headrace.system_configs (
  id                 bigserial PRIMARY KEY,
  config_key         varchar(128) NOT NULL,
  config_scope       varchar(32) NOT NULL DEFAULT 'GLOBAL'
                     CONSTRAINT ck_system_configs_config_scope CHECK (config_scope IN ('GLOBAL', 'TENANT', 'USER')),
  scope_id           varchar(64) NOT NULL DEFAULT '',
  config_value       jsonb NOT NULL,
  version            integer NOT NULL DEFAULT 1,
  is_active          boolean NOT NULL DEFAULT true,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT uk_system_configs_key_scope UNIQUE (config_key, config_scope, scope_id),
  CONSTRAINT ck_system_configs_scope_id CHECK ((scope_id = '') = (config_scope = 'GLOBAL'))
);
CREATE INDEX idx_system_configs_active_key ON headrace.system_configs (is_active, config_key);
-- A user's values, when the account goes; and the list of all.
CREATE INDEX idx_system_configs_scope_id ON headrace.system_configs (scope_id) WHERE scope_id <> '';
CREATE INDEX idx_system_configs_created_at ON headrace.system_configs (created_at DESC, id DESC);

COMMENT ON TABLE headrace.system_configs IS 'Settings for everyone, a tenant or a user.';
COMMENT ON COLUMN headrace.system_configs.scope_id IS 'Whose: empty for GLOBAL, otherwise the tenant or the user.';
COMMENT ON COLUMN headrace.system_configs.version IS 'Counts the changes; optimistic lock, and the ETag.';


CREATE TABLE headrace.tech_risk_ledger (
  id                 bigserial PRIMARY KEY,
  risk_id            varchar(64) NOT NULL,
  category           varchar(32) NOT NULL
                     CONSTRAINT ck_tech_risk_ledger_category CHECK (
                       category IN ('LICENSE', 'TECHNICAL', 'COST', 'COMPLIANCE')
                     ),
  severity           varchar(16) NOT NULL
                     CONSTRAINT ck_tech_risk_ledger_severity CHECK (severity IN ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
  status             varchar(16) NOT NULL
                     CONSTRAINT ck_tech_risk_ledger_status CHECK (
                       status IN ('OPEN', 'MITIGATING', 'ACCEPTED', 'CLOSED')
                     ),
  trigger_condition  text NOT NULL,
  mitigation_plan    text NOT NULL,
  owner              varchar(64) NOT NULL,
  refs_json          jsonb,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  version            integer NOT NULL DEFAULT 0,
  CONSTRAINT uk_tech_risk_ledger_risk_id UNIQUE (risk_id)
);
CREATE INDEX idx_tech_risk_ledger_status_severity ON headrace.tech_risk_ledger (status, severity);
CREATE INDEX idx_tech_risk_ledger_owner ON headrace.tech_risk_ledger (owner);
-- "Which risks speak of this trace?"
CREATE INDEX idx_tech_risk_ledger_refs ON headrace.tech_risk_ledger USING gin (refs_json jsonb_path_ops);
CREATE INDEX idx_tech_risk_ledger_created_at ON headrace.tech_risk_ledger (created_at DESC, id DESC);

COMMENT ON TABLE headrace.tech_risk_ledger IS 'Known risks, who owns them and what is done about them.';
COMMENT ON COLUMN headrace.tech_risk_ledger.version IS 'Optimistic lock, and the ETag.';
COMMENT ON COLUMN headrace.tech_risk_ledger.refs_json IS 'Where it shows: by convention {"trace_ids": [trace id of audit_logs]} and links.';


-- What leaves the database, where it went, and what retention did last.
CREATE TABLE headrace.archives (
  id                 varchar(64) PRIMARY KEY,
  table_name         varchar(63) NOT NULL,
  period             date NOT NULL
                     CONSTRAINT ck_archives_period CHECK (extract(day FROM period) = 1),
  state              varchar(16) NOT NULL DEFAULT 'DETACHED'
                     CONSTRAINT ck_archives_state CHECK (state IN ('DETACHED', 'ARCHIVED', 'DROPPED')),
  location           text,
  row_count          bigint
                     CONSTRAINT ck_archives_row_count CHECK (row_count >= 0),
  min_id             text,
  max_id             text,
  min_at             timestamptz,
  max_at             timestamptz,
  size_bytes         bigint
                     CONSTRAINT ck_archives_size_bytes CHECK (size_bytes > 0),
  sha256             char(64)
                     CONSTRAINT ck_archives_sha256 CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  detached_at        timestamptz NOT NULL DEFAULT now(),
  archived_at        timestamptz,
  verified_at        timestamptz,
  dropped_at         timestamptz,
  restored_as        varchar(63),
  CONSTRAINT uk_archives_table_period UNIQUE (table_name, period),
  CONSTRAINT ck_archives_archived CHECK (
    state = 'DETACHED'
    OR num_nulls(location, row_count, size_bytes, sha256, archived_at) = 0
       AND (row_count = 0 OR num_nulls(min_id, max_id, min_at, max_at) = 0)
  ),
  -- Nothing is dropped whose archive was not read back and found the same.
  CONSTRAINT ck_archives_dropped CHECK (
    (dropped_at IS NOT NULL) = (state = 'DROPPED') AND (state <> 'DROPPED' OR coalesce(verified_at >= archived_at, false))
  )
);
CREATE UNIQUE INDEX uk_archives_location ON headrace.archives (location);
CREATE INDEX idx_archives_detached_at ON headrace.archives (detached_at DESC, id DESC);

COMMENT ON TABLE headrace.archives IS 'Months that have left, or are leaving, their table: the summary that stays online.';
COMMENT ON COLUMN headrace.archives.state IS 'DETACHED: beside its table, under the partition''s name. ARCHIVED: also in the archive. DROPPED: only there.';
COMMENT ON COLUMN headrace.archives.location IS 'The object''s name below HEADRACE_ARCHIVE_URL.';
COMMENT ON COLUMN headrace.archives.min_at IS 'Of created_at, as is max_at.';
COMMENT ON COLUMN headrace.archives.sha256 IS 'Of the Parquet file.';
COMMENT ON COLUMN headrace.archives.verified_at IS 'When the file was last read back and found right.';
COMMENT ON COLUMN headrace.archives.restored_as IS 'The table that its rows were put back into, while that is there.';


-- Rows that were written to the archive before they were deleted, a file for each batch.
CREATE TABLE headrace.row_archives (
  id                 varchar(64) PRIMARY KEY,
  table_name         varchar(63) NOT NULL,
  location           text NOT NULL,
  row_count          bigint NOT NULL
                     CONSTRAINT ck_row_archives_row_count CHECK (row_count > 0),
  min_id             text NOT NULL,
  max_id             text NOT NULL,
  min_at             timestamptz NOT NULL,
  max_at             timestamptz NOT NULL,
  size_bytes         bigint NOT NULL
                     CONSTRAINT ck_row_archives_size_bytes CHECK (size_bytes > 0),
  sha256             char(64) NOT NULL
                     CONSTRAINT ck_row_archives_sha256 CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT uk_row_archives_location UNIQUE (location),
  CONSTRAINT ck_row_archives_at CHECK (min_at <= max_at)
);
CREATE INDEX idx_row_archives_table_name_max_at ON headrace.row_archives (table_name, max_at DESC);

COMMENT ON TABLE headrace.row_archives IS 'Files of rows that are deleted: the summary that stays online. Written by the commit that deletes them.';
COMMENT ON COLUMN headrace.row_archives.location IS 'The object''s name below HEADRACE_ARCHIVE_URL.';
COMMENT ON COLUMN headrace.row_archives.min_id IS 'Of execution_uid, event_id or lock_key, as is max_id.';
COMMENT ON COLUMN headrace.row_archives.min_at IS 'Of created_at, as is max_at.';
COMMENT ON COLUMN headrace.row_archives.sha256 IS 'Of the Parquet file, which was read back before its rows were deleted.';


CREATE TABLE headrace.retention_runs (
  table_name         varchar(63) PRIMARY KEY,
  started_at         timestamptz NOT NULL DEFAULT now(),
  finished_at        timestamptz,
  removed_rows       bigint NOT NULL DEFAULT 0
                     CONSTRAINT ck_retention_runs_removed_rows CHECK (removed_rows >= 0),
  removed_total      bigint NOT NULL DEFAULT 0
                     CONSTRAINT ck_retention_runs_removed_total CHECK (removed_total >= removed_rows),
  error              text
);
COMMENT ON TABLE headrace.retention_runs IS 'The last run of retention over each table; the runs before it are in the audit trail and in task_executions.';
COMMENT ON COLUMN headrace.retention_runs.finished_at IS 'Null while it runs, and after it was killed.';
COMMENT ON COLUMN headrace.retention_runs.error IS 'Why it could not do all it should.';


GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.system_configs, headrace.tech_risk_ledger TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.system_configs_id_seq, headrace.tech_risk_ledger_id_seq TO headrace_app;
-- Only the owner retires months, and only it writes about them.
GRANT SELECT ON headrace.archives TO headrace_app;
-- Rows are deleted by the application; it can add to the list, and take nothing back.
GRANT SELECT, INSERT ON headrace.row_archives TO headrace_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.retention_runs TO headrace_app;

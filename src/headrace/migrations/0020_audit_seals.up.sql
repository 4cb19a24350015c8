-- Tamper evidence: events are sealed in batches, each batch has a Merkle root, and the roots are a chain.

-- The order of sealing, and audit_logs by its id.
CREATE INDEX idx_audit_events_seq ON headrace.audit_events (seq);
-- A user's name is what people search for.
CREATE INDEX idx_audit_events_username ON headrace.audit_events (("user" ->> 'username'), "timestamp" DESC);
-- Partitions that are there already name them as adopt_partition would.
DO $$
DECLARE
  index record;
BEGIN
  FOR index IN
    SELECT inhrelid::regclass AS name, parent.relname || substr(partition.relname, length('audit_events') + 1) AS wanted
    FROM pg_inherits
    JOIN pg_class AS parent ON parent.oid = inhparent
    JOIN pg_index ON indexrelid = inhrelid
    JOIN pg_class AS partition ON partition.oid = indrelid
    WHERE inhparent IN ('headrace.idx_audit_events_seq'::regclass, 'headrace.idx_audit_events_username'::regclass)
  LOOP
    EXECUTE format('ALTER INDEX %s RENAME TO %I', index.name, index.wanted);
  END LOOP;
END
$$;

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

CREATE TRIGGER tr_audit_seals_refuse_rewriting BEFORE UPDATE OR DELETE ON headrace.audit_seals
  FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE TRIGGER tr_audit_seals_refuse_truncate BEFORE TRUNCATE ON headrace.audit_seals
  FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE TRIGGER tr_audit_leaves_refuse_rewriting BEFORE UPDATE ON headrace.audit_leaves
  FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE TRIGGER tr_audit_leaves_refuse_truncate BEFORE TRUNCATE ON headrace.audit_leaves
  FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();


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
CREATE TRIGGER tr_audit_imports_touch BEFORE UPDATE ON headrace.audit_imports
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();

GRANT SELECT, INSERT ON headrace.audit_seals, headrace.audit_leaves TO headrace_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.audit_imports TO headrace_app;

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

CREATE FUNCTION headrace.archive_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source
  WHEN target     THEN true
  WHEN 'DETACHED' THEN target = 'ARCHIVED'
  WHEN 'ARCHIVED' THEN target IN ('DETACHED', 'DROPPED')  -- back: to be written once more
  ELSE false
END;
COMMENT ON FUNCTION headrace.archive_may_move(text, text) IS 'Whether an archive may go from one state to another (or stay).';

CREATE TRIGGER tr_archives_state BEFORE UPDATE OF state ON headrace.archives
  FOR EACH ROW WHEN (NOT headrace.archive_may_move(OLD.state, NEW.state))
  EXECUTE FUNCTION headrace.refuse_state_move('state');


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


-- The application keeps the months ahead itself: no row must wait in the default partition for somebody who may migrate.
-- It can make nothing but the months from this one to three ahead, of our own tables, one for each call.
CREATE FUNCTION headrace.make_month_ahead(parent regclass) RETURNS date
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog
SET timezone = 'UTC'
AS $$
DECLARE
  stem  text := (SELECT relname FROM pg_class
                 WHERE oid = parent AND relkind = 'p' AND relnamespace = 'headrace'::regnamespace);
  month date;
BEGIN
  IF stem IS NULL THEN
    RAISE EXCEPTION '% is no partitioned table of Headrace', parent USING ERRCODE = 'wrong_object_type';
  END IF;
  FOR month IN SELECT generate_series(date_trunc('month', now()), date_trunc('month', now()) + interval '3 months', '1 month')
  LOOP
    CONTINUE WHEN to_regclass(format('headrace.%I', stem || to_char(month, '"_y"YYYY"m"MM'))) IS NOT NULL;
    -- None, when another process has made it while we waited for our turn.
    IF headrace.create_month_partitions(parent, month, month) > 0 THEN
      RETURN month;
    END IF;
  END LOOP;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION headrace.make_month_ahead(regclass) IS 'Makes the first month that is missing, from this one to three ahead; null when none is.';

REVOKE EXECUTE ON FUNCTION headrace.make_month_ahead(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.make_month_ahead(regclass), headrace.archive_may_move(text, text) TO headrace_app;
-- Only the owner retires months, and only it writes about them.
GRANT SELECT ON headrace.archives TO headrace_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.retention_runs TO headrace_app;

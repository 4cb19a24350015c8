CREATE OR REPLACE FUNCTION headrace.note_archived_month(
  archive_id text, rows_written bigint, least_id text, greatest_id text, least_at timestamptz, greatest_at timestamptz,
  bytes bigint, digest text
) RETURNS boolean
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  WITH noted AS (
    UPDATE headrace.archives
    -- The location is no argument: who chose it could have any object of the archive read.
    SET state = 'ARCHIVED', location = table_name || '/' || table_name || to_char(period, '"_y"YYYY"m"MM') || '.' || id || '.parquet',
        row_count = rows_written, min_id = least_id, max_id = greatest_id, min_at = least_at, max_at = greatest_at,
        size_bytes = bytes, sha256 = digest, archived_at = clock_timestamp(), verified_at = NULL
    WHERE id = archive_id AND state = 'DETACHED'
    RETURNING 1
  )
  SELECT EXISTS (SELECT FROM noted);
$$;
COMMENT ON FUNCTION headrace.note_archived_month(text, bigint, text, text, timestamptz, timestamptz, bigint, text) IS 'Notes what was written to the archive of a detached month; false when the month is in another state.';
REVOKE EXECUTE ON FUNCTION headrace.note_archived_month(text, bigint, text, text, timestamptz, timestamptz, bigint, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.note_archived_month(text, bigint, text, text, timestamptz, timestamptz, bigint, text) TO headrace_app;

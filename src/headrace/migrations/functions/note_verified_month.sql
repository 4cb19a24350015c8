CREATE OR REPLACE FUNCTION headrace.note_verified_month(archive_id text, digest text) RETURNS boolean
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  WITH noted AS (
    UPDATE headrace.archives SET verified_at = clock_timestamp()
    -- The hash is here: what was verified is this very file, not one written in its place meanwhile.
    WHERE id = archive_id AND sha256 = digest AND state IN ('ARCHIVED', 'DROPPED')
    RETURNING 1
  )
  SELECT EXISTS (SELECT FROM noted);
$$;
COMMENT ON FUNCTION headrace.note_verified_month(text, text) IS 'Notes that the file of an archived month was read back and found right; false when another file was written meanwhile.';
REVOKE EXECUTE ON FUNCTION headrace.note_verified_month(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.note_verified_month(text, text) TO headrace_app;

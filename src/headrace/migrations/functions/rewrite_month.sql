CREATE OR REPLACE FUNCTION headrace.rewrite_month(archive_id text) RETURNS boolean
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  WITH moved AS (
    UPDATE headrace.archives SET state = 'DETACHED' WHERE id = archive_id AND state = 'ARCHIVED' RETURNING 1
  )
  SELECT EXISTS (SELECT FROM moved);
$$;
COMMENT ON FUNCTION headrace.rewrite_month(text) IS 'Has the file of a month written once more while its rows are still in the database; false when they are not.';
REVOKE EXECUTE ON FUNCTION headrace.rewrite_month(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.rewrite_month(text) TO headrace_app;

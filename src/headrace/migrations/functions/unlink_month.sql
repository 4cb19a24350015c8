-- Each foreign key is a trigger on another, busy table: one for each call, so that none is locked for the others.
CREATE OR REPLACE FUNCTION headrace.unlink_month(archive_id text, wait_ms integer DEFAULT 50) RETURNS interval
LANGUAGE plpgsql STRICT
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  partition text;
  key       name;
  asked_at  timestamptz := clock_timestamp();
BEGIN
  SELECT table_name || to_char(period, '"_y"YYYY"m"MM') INTO partition
  FROM headrace.archives WHERE id = archive_id AND state = 'ARCHIVED';
  SELECT conname INTO key FROM pg_constraint
  WHERE conrelid = to_regclass(format('headrace.%I', partition)) AND contype = 'f'
  ORDER BY conname LIMIT 1;
  IF key IS NULL THEN
    RETURN NULL;
  END IF;
  PERFORM set_config('lock_timeout', wait_ms || 'ms', true);
  EXECUTE format('ALTER TABLE headrace.%I DROP CONSTRAINT %I', partition, key);
  RETURN clock_timestamp() - asked_at;
END
$$;
COMMENT ON FUNCTION headrace.unlink_month(text, integer) IS 'Drops one foreign key of an archived month before its table is dropped; null when it has none. Gives how long the table that it refers to has been locked so far.';
REVOKE EXECUTE ON FUNCTION headrace.unlink_month(text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.unlink_month(text, integer) TO headrace_app;

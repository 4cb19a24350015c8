CREATE OR REPLACE FUNCTION headrace.drop_month(archive_id text, digest text, wait_ms integer DEFAULT 50) RETURNS boolean
LANGUAGE plpgsql STRICT
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  gone      headrace.archives;
  partition text;
  reason    text;
  held      bigint;
BEGIN
  UPDATE headrace.archives SET state = 'DROPPED', dropped_at = clock_timestamp()
  WHERE id = archive_id AND sha256 = digest AND state = 'ARCHIVED' AND verified_at >= archived_at
  RETURNING * INTO gone;
  IF gone.id IS NULL THEN
    RETURN false;
  END IF;
  partition := gone.table_name || to_char(gone.period, '"_y"YYYY"m"MM');
  IF (SELECT relispartition FROM pg_class WHERE oid = to_regclass(format('headrace.%I', partition))) THEN
    RAISE EXCEPTION '% must stay: it is in its table.', partition USING ERRCODE = 'restrict_violation';
  END IF;
  -- The minimum may have grown since it was detached.
  reason := headrace.why_month_is_young(gone.table_name, gone.period);
  IF reason IS NOT NULL THEN
    RAISE EXCEPTION '% must stay: %.', partition, reason USING ERRCODE = 'restrict_violation';
  END IF;
  EXECUTE format('SELECT count(*) FROM headrace.%I', partition) INTO held;
  IF held <> gone.row_count THEN
    RAISE EXCEPTION '% must stay: it has % rows, and its archive %.', partition, held, gone.row_count
      USING ERRCODE = 'restrict_violation';
  END IF;
  PERFORM set_config('lock_timeout', wait_ms || 'ms', true);
  IF gone.table_name = 'audit_events' THEN
    -- Its roots stay, and the archive has the rest.
    DELETE FROM headrace.audit_leaves WHERE month = gone.period;
  END IF;
  EXECUTE format('DROP TABLE headrace.%I', partition);
  RETURN true;
END
$$;
COMMENT ON FUNCTION headrace.drop_month(text, text, integer) IS 'Drops the table of a month whose archive was verified since it was written; false when it was not.';
REVOKE EXECUTE ON FUNCTION headrace.drop_month(text, text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.drop_month(text, text, integer) TO headrace_app;

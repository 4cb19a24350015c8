-- The application retires months with these functions, and needs no owner's password for it: detach_month,
-- note_archived_month, note_verified_month, unlink_month and drop_month, in this order. Each checks what came before.
CREATE OR REPLACE FUNCTION headrace.detach_month(parent text, month date, archive_id text, wait_ms integer DEFAULT 50)
RETURNS interval
LANGUAGE plpgsql STRICT
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  partition text := parent || to_char(month, '"_y"YYYY"m"MM');
  reason    text;
  asked_at  timestamptz;
BEGIN
  IF extract(day FROM month) <> 1 OR NOT EXISTS (
    SELECT FROM pg_inherits
    WHERE inhparent = to_regclass(format('headrace.%I', parent)) AND inhrelid = to_regclass(format('headrace.%I', partition))
  ) THEN
    RAISE EXCEPTION '% has no month %', parent, month USING ERRCODE = 'undefined_table';
  END IF;
  -- It becomes part of a file's name.
  IF archive_id !~ '^arc_[0-9a-z]{26}$' THEN
    RAISE EXCEPTION '% is no id of an archive', archive_id USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- From this check until the month has left, its own writers wait; others do not. The time is enough for autovacuum to
  -- notice that it is in the way.
  PERFORM set_config('lock_timeout', '2s', true);
  EXECUTE format('LOCK TABLE headrace.%I IN SHARE MODE', partition);
  reason := headrace.why_month_stays(parent, month);
  IF reason IS NOT NULL THEN
    RAISE EXCEPTION '% must stay: %.', partition, reason USING ERRCODE = 'restrict_violation';
  END IF;
  INSERT INTO headrace.archives (id, table_name, period) VALUES (archive_id, parent, month);

  PERFORM set_config('lock_timeout', wait_ms || 'ms', true);
  asked_at := clock_timestamp();
  EXECUTE format('LOCK TABLE ONLY headrace.%I IN ACCESS EXCLUSIVE MODE', parent);
  EXECUTE format('ALTER TABLE headrace.%I DETACH PARTITION headrace.%I', parent, partition);
  RETURN clock_timestamp() - asked_at;
END
$$;
COMMENT ON FUNCTION headrace.detach_month(text, date, text, integer) IS 'Takes an expired month out of its table and begins its archive; refuses one that must stay. Gives how long the table has been locked so far.';
REVOKE EXECUTE ON FUNCTION headrace.detach_month(text, date, text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.detach_month(text, date, text, integer) TO headrace_app;

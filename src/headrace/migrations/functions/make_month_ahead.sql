-- The application creates future months itself: no row must wait in the default partition for a role that may migrate.
-- It can make nothing but the months from this one to three ahead, of our own tables, one for each call.
CREATE OR REPLACE FUNCTION headrace.make_month_ahead(parent regclass) RETURNS date
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
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
GRANT EXECUTE ON FUNCTION headrace.make_month_ahead(regclass) TO headrace_app;

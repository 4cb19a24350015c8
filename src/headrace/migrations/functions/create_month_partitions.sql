-- Made apart and then attached: the parent is read and written meanwhile, which CREATE … PARTITION OF would not allow.
-- Whoever writes to a table that the parent refers to does wait until this commits: give it a transaction of its own,
-- with a short lock_timeout. Bounds are UTC months, also for an owner whose session lives elsewhere.
CREATE OR REPLACE FUNCTION headrace.create_month_partitions(parent regclass, first date, last date) RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
AS $$
DECLARE
  home      text;
  stem      text;
  month     timestamp;
  partition text;
  made      integer := 0;
BEGIN
  SELECT nspname, relname INTO home, stem
  FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE pg_class.oid = parent;

  -- Two processes that look ahead at the same moment take turns; rows come and go meanwhile.
  EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);

  FOR month IN
    SELECT generate_series(date_trunc('month', first::timestamp), date_trunc('month', last::timestamp), '1 month')
  LOOP
    partition := format('%I.%I', home, stem || to_char(month, '"_y"YYYY"m"MM'));
    CONTINUE WHEN to_regclass(partition) IS NOT NULL;
    EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)',
                   partition, parent);
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)',
                   parent, partition, month, month + interval '1 month');
    PERFORM headrace.adopt_partition(parent, partition);
    made := made + 1;
  END LOOP;
  RETURN made;
END
$$;
COMMENT ON FUNCTION headrace.create_month_partitions(regclass, date, date) IS 'Makes the missing monthly partitions from the month of first to the month of last; says how many. For the owner; run it as often as you like.';
REVOKE EXECUTE ON FUNCTION headrace.create_month_partitions(regclass, date, date) FROM PUBLIC;

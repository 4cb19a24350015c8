CREATE OR REPLACE FUNCTION headrace.why_month_is_young(parent text, month date) RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
AS $$
DECLARE
  over_at timestamptz := month + interval '1 month';
  minimum headrace.retention_minimums;
BEGIN
  IF over_at > now() THEN
    RETURN 'it is not over yet';
  END IF;
  SELECT * INTO minimum FROM headrace.retention_minimums WHERE table_name = parent;
  IF minimum.table_name IS NULL THEN
    RETURN format('%s has no minimum retention', parent);
  ELSIF minimum.keep IS NULL THEN
    RETURN format('months of %s are kept for ever; to change that, run `headrace migrate` with %s', parent, minimum.setting);
  ELSIF over_at + minimum.keep > now() THEN
    RETURN format('months of %s are kept for %s, this one until %s; to shorten that, run `headrace migrate` with %s',
                  parent, minimum.keep, (over_at + minimum.keep)::date, minimum.setting);
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION headrace.why_month_is_young(text, date) IS 'Why a month is too young to be retired; null when it is old enough. For the functions that retire months.';
REVOKE EXECUTE ON FUNCTION headrace.why_month_is_young(text, date) FROM PUBLIC;

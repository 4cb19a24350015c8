-- Unlike timestamptz + interval, this depends on no session setting: a constraint may rest on it. Seconds apart from
-- milliseconds: an interval is multiplied as a double, which would round the microseconds of distant years.
CREATE OR REPLACE FUNCTION headrace.instant_of_millis(millis bigint) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
BEGIN
  RETURN (timestamp '1970-01-01' + millis / 1000 * interval '1 second' + millis % 1000 * interval '1 millisecond')
    AT TIME ZONE 'UTC';
END
$$;
COMMENT ON FUNCTION headrace.instant_of_millis(bigint) IS 'A Unix millisecond as an instant, exactly.';
GRANT EXECUTE ON FUNCTION headrace.instant_of_millis(bigint) TO headrace_app;

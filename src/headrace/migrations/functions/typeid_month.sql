CREATE OR REPLACE FUNCTION headrace.typeid_month(id text) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN date_trunc('month', timestamp '1970-01-01' + headrace.typeid_millis(id) / 1000 * interval '1 second')::date;
COMMENT ON FUNCTION headrace.typeid_month(text) IS 'The first day (UTC) of the month inside a TypeID.';
GRANT EXECUTE ON FUNCTION headrace.typeid_month(text) TO headrace_app;

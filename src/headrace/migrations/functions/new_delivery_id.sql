-- Its instant is the event's, for an attempt belongs into the event's month however late it is made. The other letters are
-- random, but for those that say that the UUID inside is of version 7.
CREATE OR REPLACE FUNCTION headrace.new_delivery_id(event_id text) RETURNS text
LANGUAGE sql VOLATILE PARALLEL SAFE
SET search_path = pg_catalog
AS $$
  SELECT 'whd_' || left(right(event_id, 26), 10) || 'e' || substr(random, 1, 2) || '8' || substr(random, 4, 5) || right(random, 7)
  FROM (SELECT replace(gen_random_uuid()::text, '-', '') AS random) AS uuid
$$;
COMMENT ON FUNCTION headrace.new_delivery_id(text) IS 'A fresh TypeID whd_… with the instant of an event.';
REVOKE EXECUTE ON FUNCTION headrace.new_delivery_id(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.new_delivery_id(text) TO headrace_app;

-- As MySQL's ON UPDATE CURRENT_TIMESTAMP: each table's trigger calls this only when the statement did not set the
-- column itself. clock_timestamp() and not now(): a transaction that waited for the row must not set it back.
CREATE OR REPLACE FUNCTION headrace.touch_updated_at() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  NEW.updated_at := pg_catalog.clock_timestamp();
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION headrace.touch_updated_at() IS 'Trigger: moves updated_at.';

-- Refuses a seal that does not chain to the last one, or that covers numbers which were not given out yet: accepting it
-- would keep every later event from being sealed.
CREATE OR REPLACE FUNCTION headrace.refuse_loose_seal() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  last record;
BEGIN
  SELECT number, chain INTO last FROM headrace.audit_seals ORDER BY number DESC LIMIT 1;
  IF NEW.number = coalesce(last.number, 0) + 1
    AND NEW.previous = coalesce(last.chain, decode(repeat('00', 32), 'hex'))
    AND NEW.last_seq <= (SELECT last_value FROM headrace.audit_events_seq)
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'seal % does not follow the last one (%)', NEW.number, TG_NAME
    USING ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END
$$;
COMMENT ON FUNCTION headrace.refuse_loose_seal() IS 'Trigger: a seal follows the last one, over numbers that were given out.';

-- The first ten of the 26 letters after the prefix hold 50 bits: two zeros and the 48 bits of the millisecond.
--
-- In PL/pgSQL, as every function that a CHECK rests on: one in SQL is inlined again in every statement, which took a third of
-- the time of writing an audit event.
-- A letter at a time: PL/pgSQL prepares an expression again in every transaction, and a short one ten times is sooner done
-- than one of ten parts. Other CHECKs call it, too, so its operators are named in full: that costs less than a search_path.
CREATE OR REPLACE FUNCTION headrace.typeid_millis(id text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  millis bigint := 0;
BEGIN
  FOR place IN REVERSE 25..16 LOOP
    millis := (millis OPERATOR(pg_catalog.<<) 5) OPERATOR(pg_catalog.|) (pg_catalog.strpos(
      '0123456789abcdefghjkmnpqrstvwxyz', pg_catalog.substr(id, pg_catalog.length(id) OPERATOR(pg_catalog.-) place, 1)
    ) OPERATOR(pg_catalog.-) 1);
  END LOOP;
  RETURN millis;
END
$$;
COMMENT ON FUNCTION headrace.typeid_millis(text) IS 'The Unix millisecond inside a TypeID.';
GRANT EXECUTE ON FUNCTION headrace.typeid_millis(text) TO headrace_app;

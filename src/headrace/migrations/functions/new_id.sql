-- An id like those the programs make, for submitters that only have SQL.
CREATE OR REPLACE FUNCTION headrace.new_id(prefix text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL SAFE
SET search_path = pg_catalog
AS $$
DECLARE
  letters CONSTANT text := '0123456789abcdefghjkmnpqrstvwxyz';
  bytes   bytea := substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                   || substring(uuid_send(gen_random_uuid()) FROM 7);
  bits    bit varying;
  suffix  text := '';
BEGIN
  bytes := set_byte(bytes, 6, get_byte(bytes, 6) & 15 | 112);  -- the random uuid says version 4, this is 7
  bits := B'00' || ('x' || encode(bytes, 'hex'))::bit(128);
  FOR position IN 0..25 LOOP
    suffix := suffix || substr(letters, substring(bits FROM position * 5 + 1 FOR 5)::bit(5)::integer + 1, 1);
  END LOOP;
  RETURN prefix || '_' || suffix;
END
$$;
COMMENT ON FUNCTION headrace.new_id(text) IS 'A fresh TypeID by the database''s clock.';

CREATE OR REPLACE FUNCTION headrace.letters_of_millis(millis bigint) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  letters text := '';
BEGIN
  FOR bits IN REVERSE 45..0 BY 5 LOOP
    letters := letters || pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', (millis >> bits & 31)::integer + 1, 1);
  END LOOP;
  RETURN letters;
END
$$;
COMMENT ON FUNCTION headrace.letters_of_millis(bigint) IS 'The ten letters of a TypeID that hold this Unix millisecond.';
REVOKE EXECUTE ON FUNCTION headrace.letters_of_millis(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.letters_of_millis(bigint) TO headrace_app;

DROP FUNCTION headrace.is_audit_event(text, bigint, timestamptz, text, text, jsonb, jsonb, jsonb, text);

CREATE OR REPLACE FUNCTION headrace.typeid_millis(id text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
BEGIN
  RETURN (pg_catalog.strpos('0123456789abcdefghjkmnpqrstvwxyz', pg_catalog.substr(id, pg_catalog.length(id) - 25, 1)) - 1)::bigint
    << 5 | pg_catalog.strpos('0123456789abcdefghjkmnpqrstvwxyz', pg_catalog.substr(id, pg_catalog.length(id) - 24, 1)) - 1
    << 5 | pg_catalog.strpos('0123456789abcdefghjkmnpqrstvwxyz', pg_catalog.substr(id, pg_catalog.length(id) - 23, 1)) - 1
    << 5 | pg_catalog.strpos('0123456789abcdefghjkmnpqrstvwxyz', pg_catalog.substr(id, pg_catalog.length(id) - 22, 1)) - 1
    << 5 | pg_catalog.strpos('0123456789abcdefghjkmnpqrstvwxyz', pg_catalog.substr(id, pg_catalog.length(id) - 21, 1)) - 1
    << 5 | pg_catalog.strpos('0123456789abcdefghjkmnpqrstvwxyz', pg_catalog.substr(id, pg_catalog.length(id) - 20, 1)) - 1
    << 5 | pg_catalog.strpos('0123456789abcdefghjkmnpqrstvwxyz', pg_catalog.substr(id, pg_catalog.length(id) - 19, 1)) - 1
    << 5 | pg_catalog.strpos('0123456789abcdefghjkmnpqrstvwxyz', pg_catalog.substr(id, pg_catalog.length(id) - 18, 1)) - 1
    << 5 | pg_catalog.strpos('0123456789abcdefghjkmnpqrstvwxyz', pg_catalog.substr(id, pg_catalog.length(id) - 17, 1)) - 1
    << 5 | pg_catalog.strpos('0123456789abcdefghjkmnpqrstvwxyz', pg_catalog.substr(id, pg_catalog.length(id) - 16, 1)) - 1;
END
$$;

CREATE OR REPLACE FUNCTION headrace.letters_of_millis(millis bigint) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  letters CONSTANT text := '0123456789abcdefghjkmnpqrstvwxyz';
BEGIN
  RETURN pg_catalog.substr(letters, (millis >> 45 & 31)::integer + 1, 1)
    || pg_catalog.substr(letters, (millis >> 40 & 31)::integer + 1, 1)
    || pg_catalog.substr(letters, (millis >> 35 & 31)::integer + 1, 1)
    || pg_catalog.substr(letters, (millis >> 30 & 31)::integer + 1, 1)
    || pg_catalog.substr(letters, (millis >> 25 & 31)::integer + 1, 1)
    || pg_catalog.substr(letters, (millis >> 20 & 31)::integer + 1, 1)
    || pg_catalog.substr(letters, (millis >> 15 & 31)::integer + 1, 1)
    || pg_catalog.substr(letters, (millis >> 10 & 31)::integer + 1, 1)
    || pg_catalog.substr(letters, (millis >> 5 & 31)::integer + 1, 1)
    || pg_catalog.substr(letters, (millis & 31)::integer + 1, 1);
END
$$;

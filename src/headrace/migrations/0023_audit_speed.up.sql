-- The trail of one type, newest first: idx_audit_events_composite has each action in order, not all of them together.
CREATE INDEX idx_audit_events_resource_type ON headrace.audit_events (resource_type, "timestamp" DESC);
DO $$
DECLARE
  index record;
BEGIN
  FOR index IN  -- partitions that are there already name it as adopt_partition would
    SELECT inhrelid::regclass AS name, parent.relname || substr(partition.relname, length('audit_events') + 1) AS wanted
    FROM pg_inherits
    JOIN pg_class AS parent ON parent.oid = inhparent
    JOIN pg_index ON indexrelid = inhrelid
    JOIN pg_class AS partition ON partition.oid = indrelid
    WHERE inhparent = 'headrace.idx_audit_events_resource_type'::regclass
  LOOP
    EXECUTE format('ALTER INDEX %s RENAME TO %I', index.name, index.wanted);
  END LOOP;
END
$$;

-- The functions that CHECKs rest on, in PL/pgSQL. One in SQL is inlined, and for a CHECK that happens anew in every
-- statement: a third of the time of writing an audit event went into it. These are called, and their plans are kept.

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

CREATE OR REPLACE FUNCTION headrace.instant_of_millis(millis bigint) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
BEGIN
  RETURN (timestamp '1970-01-01' + millis / 1000 * interval '1 second' + millis % 1000 * interval '1 millisecond')
    AT TIME ZONE 'UTC';
END
$$;

CREATE FUNCTION headrace.letters_of_millis(millis bigint) RETURNS text
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
COMMENT ON FUNCTION headrace.letters_of_millis(bigint) IS 'The ten letters of a TypeID that hold this Unix millisecond.';
REVOKE EXECUTE ON FUNCTION headrace.letters_of_millis(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.letters_of_millis(bigint) TO headrace_app;

DROP INDEX headrace.idx_audit_events_resource_type;
DROP FUNCTION headrace.letters_of_millis(bigint);

CREATE OR REPLACE FUNCTION headrace.typeid_millis(id text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 25, 1)) - 1)::bigint
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 24, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 23, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 22, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 21, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 20, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 19, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 18, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 17, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 16, 1)) - 1;

CREATE OR REPLACE FUNCTION headrace.instant_of_millis(millis bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (timestamp '1970-01-01' + millis / 1000 * interval '1 second' + millis % 1000 * interval '1 millisecond')
  AT TIME ZONE 'UTC';

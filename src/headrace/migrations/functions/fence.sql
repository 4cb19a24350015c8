-- A claim as one number, to be looked for in a list.
CREATE OR REPLACE FUNCTION headrace.fence(seq bigint, attempt integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN seq << 20 | attempt;

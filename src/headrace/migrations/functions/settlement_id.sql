-- The id of the entry that settles a hold follows from the hold's: the same instant inside (the accounting month is the
-- hold's), and another last third. Settling twice meets the primary key, and no random numbers are needed.
CREATE OR REPLACE FUNCTION headrace.settlement_id(hold_id text, status text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN left(hold_id, -8) || translate(
  right(hold_id, 8),
  '0123456789abcdefghjkmnpqrstvwxyz',
  CASE status WHEN 'COMMITTED' THEN '123456789abcdefghjkmnpqrstvwxyz0' ELSE '23456789abcdefghjkmnpqrstvwxyz01' END
);
COMMENT ON FUNCTION headrace.settlement_id(text, text) IS 'The id of the entry that commits or releases a hold.';
GRANT EXECUTE ON FUNCTION headrace.settlement_id(text, text) TO headrace_app;

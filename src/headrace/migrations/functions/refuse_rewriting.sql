-- For rows that are evidence (the audit trail, the ledger). Rights refuse the application first; this refuses everyone.
CREATE OR REPLACE FUNCTION headrace.refuse_rewriting() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'restrict_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME,
          HINT = 'Only the retention of whole expired partitions removes rows.';
END
$$;
COMMENT ON FUNCTION headrace.refuse_rewriting() IS 'Trigger: refuses UPDATE, DELETE and TRUNCATE.';

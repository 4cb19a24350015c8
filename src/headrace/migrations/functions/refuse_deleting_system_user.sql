CREATE OR REPLACE FUNCTION headrace.refuse_deleting_system_user() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION 'the system user cannot be deleted'
    USING ERRCODE = 'restrict_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END
$$;
COMMENT ON FUNCTION headrace.refuse_deleting_system_user() IS 'Trigger: the product''s own account stays.';

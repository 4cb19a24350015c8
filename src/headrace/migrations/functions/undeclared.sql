CREATE OR REPLACE FUNCTION headrace.undeclared() RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT '{"undeclared type": ""}'::jsonb $$;
COMMENT ON FUNCTION headrace.undeclared() IS 'The labels of a lane whose tasks wait for their type to be declared. No worker has such a label, and no task can ask for it: it has a space.';
GRANT EXECUTE ON FUNCTION headrace.undeclared() TO headrace_app;

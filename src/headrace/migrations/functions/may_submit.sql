-- Whether a user may submit tasks of a type that says this; rights.py does the same. Scopes narrow API keys, which a
-- program that reaches the database does not come with.
CREATE OR REPLACE FUNCTION headrace.may_submit(rule text, user_id text)
RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog
AS $$
  SELECT coalesce(may_submit.rule, 'admins') <> 'admins'
      OR may_submit.user_id = 'u_00000000000000000000000000'  -- the product itself
      OR EXISTS (SELECT FROM headrace.users WHERE id = may_submit.user_id AND role = 'ADMIN')
$$;
COMMENT ON FUNCTION headrace.may_submit(text, text) IS 'Whether a user may submit tasks of a type, by the submit of the type.';
GRANT EXECUTE ON FUNCTION headrace.may_submit(text, text) TO headrace_app;

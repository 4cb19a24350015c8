DO $$
DECLARE
  steered regprocedure;
BEGIN
  FOR steered IN
    SELECT oid FROM pg_proc
    WHERE pronamespace = 'headrace'::regnamespace AND EXISTS (SELECT FROM unnest(proconfig) AS setting WHERE setting ~ '^enable_')
  LOOP
    EXECUTE format('ALTER FUNCTION %s RESET jit', steered);
  END LOOP;
END
$$;

-- Marks a request with a key as running until this transaction ends; HR011 if another transaction has marked it. It never
-- waits: the other one executes the same request. An error rather than an answer, so that it can go in one message with
-- BEGIN, of which no answer is read; the look at what is stored comes after it, and sees the commit of the last holder.
CREATE OR REPLACE FUNCTION headrace.lock_request(request bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog
AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(request) THEN
    RAISE EXCEPTION 'the same request is being executed'
      USING ERRCODE = 'HR011', HINT = 'Send it again when the first has been answered.';
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.lock_request(bigint) IS 'Marks a request with an idempotency key as running until the transaction ends.';
REVOKE EXECUTE ON FUNCTION headrace.lock_request(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.lock_request(bigint) TO headrace_app;

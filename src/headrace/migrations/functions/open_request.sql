-- Begins a request with a key: marks it as running until this transaction ends (lock_request), and HR012 if it was answered
-- before. Errors rather than answers, so that it can go in one message with BEGIN, of which no answer is read. The look is a
-- statement of its own after the lock: it sees the commit of the last holder.
CREATE OR REPLACE FUNCTION headrace.open_request(request bigint, key jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  asked_scope text := key ->> 'scope';
  asked_user  text := key ->> 'user_id';
  asked_key   text := key ->> 'key';
BEGIN
  PERFORM headrace.lock_request(request);
  -- IS NOT DISTINCT FROM would be one statement, but uses no index.
  IF asked_user IS NULL THEN
    PERFORM FROM headrace.idempotency_keys AS known
    WHERE known.scope = asked_scope AND known.user_id IS NULL AND known.idempotency_key = asked_key
      AND known.expires_at > now();
  ELSE
    PERFORM FROM headrace.idempotency_keys AS known
    WHERE known.scope = asked_scope AND known.user_id = asked_user AND known.idempotency_key = asked_key
      AND known.expires_at > now();
  END IF;
  IF FOUND THEN
    RAISE EXCEPTION 'the request was answered before'
      USING ERRCODE = 'HR012', HINT = 'Its answer is in idempotency_keys.';
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.open_request(bigint, jsonb) IS 'Marks a request with an idempotency key as running until the transaction ends, unless it was answered before.';
REVOKE EXECUTE ON FUNCTION headrace.open_request(bigint, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.open_request(bigint, jsonb) TO headrace_app;

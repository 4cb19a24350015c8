-- Keeps the answer to a request with a key, in the place of one that has expired. The caller holds the key's lock
-- (open_request), so no other session has answered it meanwhile.
CREATE OR REPLACE FUNCTION headrace.keep_answer(answer jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  INSERT INTO headrace.idempotency_keys AS known
    (scope, user_id, idempotency_key, request_hash, response_json, response_headers, http_status, result_task_id,
     expires_at)
  VALUES (
    answer ->> 'scope', answer ->> 'user_id', answer ->> 'key', answer ->> 'hash', nullif(answer -> 'body', 'null'),
    nullif(answer -> 'headers', 'null'), (answer ->> 'status')::integer, answer ->> 'task_id',
    now() + make_interval(secs => (answer ->> 'lifetime_seconds')::double precision)
  )
  ON CONFLICT ON CONSTRAINT uk_idempotency_scope_user_key DO UPDATE SET
    request_hash = excluded.request_hash, response_json = excluded.response_json,
    response_headers = excluded.response_headers, http_status = excluded.http_status,
    result_task_id = excluded.result_task_id, expires_at = excluded.expires_at, created_at = now()
  WHERE known.expires_at <= now();
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the request was answered while its lock was held';
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.keep_answer(jsonb) IS 'Keeps the answer to a request with an idempotency key.';
REVOKE EXECUTE ON FUNCTION headrace.keep_answer(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.keep_answer(jsonb) TO headrace_app;

-- The first submission with a key decides: gives its task's id, which is the given one if this is the first. Whoever
-- comes while the first is not committed waits for it, and goes first if it is rolled back.
CREATE OR REPLACE FUNCTION headrace.claim_submission_key(user_id text, idempotency_key text, digest text, task_id text)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
  lifetime interval := coalesce(nullif(current_setting('headrace.idempotency_lifetime', true), '')::interval, '24 hours');
  first    record;
BEGIN
  LOOP
    INSERT INTO headrace.idempotency_keys AS known
      (scope, user_id, idempotency_key, request_hash, result_task_id, http_status, expires_at)
    VALUES ('tasks.submit', $1, $2, $3, $4, 201, now() + lifetime)
    ON CONFLICT (scope, user_id, idempotency_key) DO UPDATE
    SET request_hash = $3, result_task_id = $4, expires_at = now() + lifetime
    WHERE known.expires_at <= now()
    RETURNING request_hash, result_task_id INTO first;
    EXIT WHEN FOUND;
    -- A statement of its own: it sees what was committed while we waited. Nothing there: the key expired just now.
    SELECT request_hash, result_task_id INTO first
    FROM headrace.idempotency_keys
    WHERE scope = 'tasks.submit' AND user_id = $1 AND idempotency_key = $2;
    EXIT WHEN FOUND;
  END LOOP;
  IF first.request_hash <> digest THEN
    RAISE EXCEPTION 'the idempotency key % was used for another task', quote_literal(idempotency_key)
      USING ERRCODE = 'HR002', HINT = 'Take a fresh key for each task; repeat one only with the very same arguments.';
  END IF;
  RETURN first.result_task_id;
END
$$;
REVOKE EXECUTE ON FUNCTION headrace.claim_submission_key(text, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.claim_submission_key(text, text, text, text) TO headrace_app;

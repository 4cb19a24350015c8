-- What must be the same for the same idempotency key: what was asked, not what the type made of it, so that a release
-- with other defaults does not turn a repetition into another request. The trace may differ.
CREATE OR REPLACE FUNCTION headrace.submission_digest(
  type text, payload jsonb, title text, queue text, priority integer, run_at timestamptz, max_attempts integer,
  timeout_seconds integer, limit_key text, labels jsonb, schedule_uid text
)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN encode(sha256(convert_to(jsonb_build_array(
  type, payload, title, queue, priority, extract(epoch FROM run_at), max_attempts, timeout_seconds, limit_key, labels,
  schedule_uid
)::text, 'UTF8')), 'hex');
COMMENT ON FUNCTION headrace.submission_digest(text, jsonb, text, text, integer, timestamptz, integer, integer, text, jsonb, text) IS 'The request_hash of a submission in idempotency_keys.';
GRANT EXECUTE ON FUNCTION headrace.submission_digest(text, jsonb, text, text, integer, timestamptz, integer, integer, text, jsonb, text) TO headrace_app;

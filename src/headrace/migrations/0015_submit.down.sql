DROP FUNCTION headrace.submit(text, jsonb, text, text, text, integer, timestamptz, integer, integer, text, jsonb, text, text, text);
DROP FUNCTION headrace.claim_submission_key(text, text, text, text);
DROP FUNCTION headrace.check_submission(text, jsonb, text, text, integer, timestamptz, integer, integer, text, jsonb, text);
DROP FUNCTION headrace.submission_digest(text, jsonb, text, text, integer, timestamptz, integer, integer, text, jsonb, text);
DROP FUNCTION headrace.emit_task_events(text[], text[], text[], integer[]);

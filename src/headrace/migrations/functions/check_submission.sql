-- The rules of a submission that no column states. HR003: too large, HR004: the payload is wrong, HR005: the rest is.
CREATE OR REPLACE FUNCTION headrace.check_submission(
  type text, payload jsonb, title text, queue text, priority integer, run_at timestamptz, max_attempts integer,
  timeout_seconds integer, limit_key text, labels jsonb, idempotency_key text
)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog
AS $$
DECLARE
  body  text := payload::text;
  most  integer := coalesce(nullif(current_setting('headrace.payload_limit', true), '')::integer, 262144);
  fault text;
BEGIN
  IF octet_length(body) > most THEN
    RAISE EXCEPTION 'the payload has % bytes and may have %', octet_length(body), most
      USING ERRCODE = 'HR003', HINT = 'Store the data elsewhere and send its address; or set headrace.payload_limit.';
  END IF;
  -- Cheap first: nothing nests deeper than it has brackets.
  IF length(body) - length(translate(body, '[{', '')) > 100
     AND jsonb_path_exists(payload, 'strict $.**{100} ? (@.type() == "object" || @.type() == "array")') THEN
    RAISE EXCEPTION 'the payload is nested deeper than 100 levels'
      USING ERRCODE = 'HR004', HINT = 'Flatten it: readers in other languages fall over such depths.';
  END IF;
  fault := CASE
    WHEN type IS NULL OR type !~ '^[A-Za-z][A-Za-z0-9_.:-]{0,254}$'
      THEN 'a type has 1 to 255 letters, digits and characters of _ . : - and begins with a letter'
    WHEN type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT') THEN type || ' tasks are ordered through removal, which knows their file'
    WHEN priority NOT BETWEEN -1000000 AND 1000000 THEN 'priority must lie between -1,000,000 and 1,000,000'
    WHEN max_attempts NOT BETWEEN 1 AND 1000 THEN 'max_attempts must lie between 1 and 1000'
    WHEN timeout_seconds < 1 THEN 'timeout_seconds must be at least 1'
    -- Neither an infinity nor a year that programs cannot hold may get into the queue that every worker reads.
    WHEN NOT (run_at >= '1970-01-01' AND run_at < '9999-01-01') THEN 'run_at must lie between the years 1970 and 9998'
    WHEN length(title) NOT BETWEEN 1 AND 255 THEN 'title has 1 to 255 characters'
    WHEN length(queue) NOT BETWEEN 1 AND 64 THEN 'queue has 1 to 64 characters'
    WHEN length(limit_key) NOT BETWEEN 1 AND 255 THEN 'limit_key has 1 to 255 characters'
    WHEN length(idempotency_key) NOT BETWEEN 1 AND 128 THEN 'an idempotency key has 1 to 128 characters'
    WHEN jsonb_typeof(labels) <> 'object' OR jsonb_path_exists(labels, 'strict $.* ? (@.type() != "string")')
      THEN 'labels must be an object of strings'
    -- They are part of an index entry, so they are few and short.
    WHEN labels <> '{}' AND (
      SELECT count(*) > 8 OR bool_or(key !~ '^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$'
                                     OR value !~ '^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$')
      FROM jsonb_each_text(labels)
    ) THEN 'labels are at most 8, with names and values of 1 to 63 letters, digits and characters of . _ / - '
           'from a letter or a digit on'
  END;
  IF fault IS NOT NULL THEN
    RAISE EXCEPTION '%', fault
      USING ERRCODE = 'HR005', HINT = 'The task cannot be submitted like this; nothing was written.';
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.check_submission(text, jsonb, text, text, integer, timestamptz, integer, integer, text, jsonb, text) IS 'Refuses what headrace.submit cannot take.';
GRANT EXECUTE ON FUNCTION headrace.check_submission(text, jsonb, text, text, integer, timestamptz, integer, integer, text, jsonb, text) TO headrace_app;

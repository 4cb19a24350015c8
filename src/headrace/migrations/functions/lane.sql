-- For programs of an earlier release, which know no routes; adopt_queue_rows gives their rows one.
CREATE OR REPLACE FUNCTION headrace.lane(queue text, task_type text, user_id text, limit_key text, labels jsonb, only_once boolean)
RETURNS integer
LANGUAGE sql VOLATILE
AS $$ SELECT assigned.lane_id FROM headrace.assign_lane($1, $2, $3, $4, $5, $6) AS assigned $$;
COMMENT ON FUNCTION headrace.lane(text, text, text, text, jsonb, boolean) IS 'The number of a lane, made if it is new, for programs of an earlier release.';

-- Looks first: a lane is made once and asked for by every submission.
CREATE OR REPLACE FUNCTION headrace.lane(queue text, task_type text, user_id text, limit_key text, labels jsonb, only_once boolean)
RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  number integer;
BEGIN
  LOOP
    SELECT known.id INTO number
    FROM headrace.task_lanes AS known
    WHERE known.queue = $1 AND known.task_type = $2 AND known.user_id = $3
      AND known.limit_key = $4 AND known.labels = $5 AND known.only_once = $6;
    IF FOUND THEN
      RETURN number;
    END IF;
    INSERT INTO headrace.task_lanes (queue, task_type, user_id, limit_key, labels, only_once)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT DO NOTHING
    RETURNING task_lanes.id INTO number;
    IF FOUND THEN
      RETURN number;
    END IF;
    -- Somebody else made it just now; their row is visible to the next look.
  END LOOP;
END
$$;
COMMENT ON FUNCTION headrace.lane(text, text, text, text, jsonb, boolean) IS 'The number of a lane, made if it is new; to be remembered only after the commit.';

-- Looks first: a lane is made once and asked for by every submission. Two submissions that create one lane at once make two
-- rows, and neither waits for the other's commit: limits count by what a lane says, and later submissions take the first.
CREATE OR REPLACE FUNCTION headrace.assign_lane(
  queue text, task_type text, user_id text, limit_key text, labels jsonb, only_once boolean,
  OUT lane_id integer, OUT route_id integer
)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
BEGIN
  SELECT known.id, known.route_id INTO assign_lane.lane_id, assign_lane.route_id
  FROM headrace.task_lanes AS known
  WHERE known.queue = $1 AND known.task_type = $2 AND known.user_id = $3
    AND known.limit_key = $4 AND known.labels = $5 AND known.only_once = $6
    AND known.retired_at IS NULL AND known.route_id IS NOT NULL
  ORDER BY known.id
  LIMIT 1;
  IF NOT FOUND THEN
    assign_lane.route_id := headrace.route($1, $2, $5);
    INSERT INTO headrace.task_lanes AS made (queue, task_type, user_id, limit_key, labels, only_once, route_id)
    VALUES ($1, $2, $3, $4, $5, $6, assign_lane.route_id)
    RETURNING made.id INTO assign_lane.lane_id;
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.assign_lane(text, text, text, text, jsonb, boolean) IS 'The numbers of a lane and its route, made if there are none; to be remembered only after the commit, and for an hour at most (see retire_lanes).';
GRANT EXECUTE ON FUNCTION headrace.assign_lane(text, text, text, text, jsonb, boolean) TO headrace_app;

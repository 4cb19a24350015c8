-- Two submissions that create one route at once make two rows, and neither waits for the other's commit. Both are surveyed.
CREATE OR REPLACE FUNCTION headrace.route(queue text, task_type text, labels jsonb) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  number integer;
BEGIN
  SELECT known.id INTO number
  FROM headrace.task_routes AS known
  WHERE known.task_type = $2 AND known.labels = $3 AND known.queue = $1
  ORDER BY known.id
  LIMIT 1;
  IF NOT FOUND THEN
    INSERT INTO headrace.task_routes (task_type, labels, queue) VALUES ($2, $3, $1) RETURNING task_routes.id INTO number;
  END IF;
  RETURN number;
END
$$;
COMMENT ON FUNCTION headrace.route(text, text, jsonb) IS 'The number of a route, created if there is none.';
GRANT EXECUTE ON FUNCTION headrace.route(text, text, jsonb) TO headrace_app;

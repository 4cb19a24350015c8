-- Lanes without tasks go in two steps, because programs remember a lane's number for an hour: first new tasks get another
-- lane, and a day later the row is deleted, if it is still without tasks. At most this number of each; gives the count.
CREATE OR REPLACE FUNCTION headrace.retire_lanes(idle_for interval, most integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog
AS $$
DECLARE
  changed integer;
  gone    integer;
BEGIN
  UPDATE headrace.task_lanes AS lane SET retired_at = now()
  WHERE lane.id = ANY (ARRAY(
    SELECT idle.id FROM headrace.task_lanes AS idle
    WHERE idle.retired_at IS NULL AND idle.created_at < now() - idle_for
      AND NOT EXISTS (SELECT FROM headrace.task_queue AS q WHERE q.lane_id = idle.id)
    LIMIT most
    FOR UPDATE SKIP LOCKED
  ));
  GET DIAGNOSTICS changed = ROW_COUNT;
  DELETE FROM headrace.task_lanes AS lane
  WHERE lane.id = ANY (ARRAY(
    SELECT idle.id FROM headrace.task_lanes AS idle
    WHERE idle.retired_at < now() - interval '1 day'
      AND NOT EXISTS (SELECT FROM headrace.task_queue AS q WHERE q.lane_id = idle.id)
    LIMIT most
    FOR UPDATE SKIP LOCKED
  ));
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN changed + gone;
END
$$;
COMMENT ON FUNCTION headrace.retire_lanes(interval, integer) IS 'Retires lanes without tasks and deletes those that were retired a day ago; gives how many of both.';
GRANT EXECUTE ON FUNCTION headrace.retire_lanes(interval, integer) TO headrace_app;

-- How many more may run beside those that do. Whoever asks holds the limit's lock until the end of the transaction, so
-- two workers never count the same free slot; 0 when another worker is asking right now.
CREATE OR REPLACE FUNCTION headrace.free_slots(scope text, name text, most integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF most IS NULL THEN
    RETURN 2147483647;
  END IF;
  IF NOT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(scope || ':' || name, 7)) THEN
    RETURN 0;
  END IF;
  -- A statement of its own, after the lock: it sees what the last holder committed.
  RETURN greatest(0, most - (
    SELECT count(*)
    FROM headrace.task_queue AS running
    JOIN headrace.task_lanes AS lane ON lane.id = running.lane_id
    WHERE running.limited
      AND CASE scope WHEN 'queue' THEN lane.queue WHEN 'type' THEN lane.task_type WHEN 'plan' THEN lane.user_id
                     ELSE lane.task_type || ' ' || lane.limit_key END = name
      AND (scope <> 'plan'
           OR EXISTS (SELECT FROM headrace.task_types AS type WHERE type.name = lane.task_type AND type.limited_by_plan))
  )::integer);
END
$$;

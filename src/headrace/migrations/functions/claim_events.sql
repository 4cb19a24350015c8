-- Leases heads of aggregates whose next event was not tried yet: those that are due for longest, from the floor on. One that
-- was claimed before and is new still: that relay died with it, perhaps because of it, and from now on it is tried alone.
--
-- There is one way through it, whatever the statistics say: they are those of a table in which hardly anything waits. By
-- them it would read and sort all that waits.
CREATE OR REPLACE FUNCTION headrace.claim_events(at timestamptz, most integer, lease interval, floor timestamptz)
RETURNS TABLE (id bigint, retry_count integer, next_retry_at timestamptz, leased boolean, due_at timestamptz)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH due AS MATERIALIZED (
    SELECT head.id, head.next_retry_at AS due_at
    FROM headrace.outbox_events AS head
    WHERE head.status = 'PENDING' AND head.next_retry_at <= coalesce(at, now())
      AND head.next_retry_at >= coalesce(floor, '-infinity')
      -- As a subquery for each row, which cannot become a join over the whole table: one look into the partial index.
      AND head.id = (
        SELECT waiting.id FROM headrace.outbox_events AS waiting
        WHERE waiting.aggregate_type = head.aggregate_type AND waiting.aggregate_id = head.aggregate_id
          AND waiting.status IN ('PENDING', 'FAILED')
        ORDER BY waiting.aggregate_type, waiting.aggregate_id, waiting.id
        LIMIT 1
      )
    ORDER BY head.next_retry_at
    LIMIT most
    FOR UPDATE SKIP LOCKED
  )
  UPDATE headrace.outbox_events AS event
  SET status = CASE WHEN event.retry_count = 0 THEN 'PENDING' ELSE 'FAILED' END,
      next_retry_at = coalesce(at, now()) + CASE WHEN event.retry_count = 0 THEN lease ELSE interval '0' END,
      retry_count = greatest(event.retry_count, 1)
  FROM due WHERE event.id = due.id
  RETURNING event.id, event.retry_count, event.next_retry_at, event.status = 'PENDING', due.due_at;
END
$$;
COMMENT ON FUNCTION headrace.claim_events(timestamptz, integer, interval, timestamptz) IS 'Leases the first new events of aggregates to a relay.';
REVOKE EXECUTE ON FUNCTION headrace.claim_events(timestamptz, integer, interval, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.claim_events(timestamptz, integer, interval, timestamptz) TO headrace_app;

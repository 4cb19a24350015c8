-- Marks events whose heads are still leased until this instant, and gives those that are. Heads are locked in one order, and
-- nothing of an aggregate is touched without its head.
--
-- NOT IN, where IN would mean the same: so that the partial index of what waits cannot be used. By statistics of a table in
-- which hardly anything waits, it seems quicker to read all of that than to look up a key.
CREATE OR REPLACE FUNCTION headrace.publish_events(events bigint[], heads bigint[], leased_until timestamptz) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
BEGIN
  RETURN QUERY
  WITH held AS MATERIALIZED (
    SELECT head.id FROM headrace.outbox_events AS head
    WHERE head.id = ANY (heads) AND head.status NOT IN ('PUBLISHED', 'DEAD') AND head.next_retry_at = leased_until
    ORDER BY head.id
    FOR UPDATE
  )
  UPDATE headrace.outbox_events AS event
  SET status = 'PUBLISHED', published_at = now(),
      retry_count = event.retry_count - CASE WHEN event.id = ANY (heads) THEN 1 ELSE 0 END
  WHERE event.id = ANY (ARRAY(
      SELECT given.id FROM unnest(events, heads) AS given (id, head) WHERE given.head = ANY (ARRAY(SELECT held.id FROM held))
    )) AND event.status NOT IN ('PUBLISHED', 'DEAD')
  RETURNING event.id;
END
$$;
COMMENT ON FUNCTION headrace.publish_events(bigint[], bigint[], timestamptz) IS 'Marks events that a relay still has as published; gives those.';
REVOKE EXECUTE ON FUNCTION headrace.publish_events(bigint[], bigint[], timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace.publish_events(bigint[], bigint[], timestamptz) TO headrace_app;

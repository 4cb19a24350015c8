-- In batches by id, each a transaction of its own: a row is locked for milliseconds, and dead rows are vacuumed as it
-- goes. Killed and called again, it passes over what is filled. Not in a transaction (-- headrace: no-transaction).
CREATE OR REPLACE PROCEDURE headrace.backfill(target regclass, assignment text, missing text, batch integer DEFAULT 1000)
LANGUAGE plpgsql
AS $$
DECLARE
  past text := 'true';  -- where the last batch ended
  last text;
BEGIN
  LOOP
    EXECUTE format('SELECT max(id)::text FROM (SELECT id FROM %s WHERE %s ORDER BY id LIMIT %s) AS batch', target, past, batch)
    INTO last;
    EXIT WHEN last IS NULL;
    EXECUTE format('UPDATE %s SET %s WHERE %s AND id <= %L AND (%s)', target, assignment, past, last, missing);
    COMMIT;
    past := format('id > %L', last);
  END LOOP;
END
$$;
COMMENT ON PROCEDURE headrace.backfill(regclass, text, text, integer) IS 'Fills a column in batches by id: CALL headrace.backfill(''headrace.things'', ''tenant = owner'', ''tenant IS NULL'').';
REVOKE EXECUTE ON PROCEDURE headrace.backfill(regclass, text, text, integer) FROM PUBLIC;

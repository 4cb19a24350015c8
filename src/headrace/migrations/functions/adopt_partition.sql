-- Row triggers come to a partition by themselves; TRUNCATE triggers, ownership and the names of indexes do not. A
-- violated unique key is reported under the partition's name for it: uk_thing_y2026m11 still says uk_thing. Does no harm
-- to a partition that has it all.
CREATE OR REPLACE FUNCTION headrace.adopt_partition(parent regclass, partition regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  owner  text := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = parent);
  suffix text := (SELECT substr(child.relname, length(mother.relname) + 1)
                  FROM pg_class AS child, pg_class AS mother
                  WHERE child.oid = partition AND mother.oid = parent);
  guard  record;
  index  record;
BEGIN
  FOR index IN
    SELECT own.oid::regclass AS name, of_parent.relname || suffix AS wanted
    FROM pg_index
    JOIN pg_inherits ON inhrelid = indexrelid
    JOIN pg_class AS own ON own.oid = inhrelid
    JOIN pg_class AS of_parent ON of_parent.oid = inhparent
    WHERE indrelid = partition AND own.relname <> of_parent.relname || suffix
  LOOP
    EXECUTE format('ALTER INDEX %s RENAME TO %I', index.name, index.wanted);
  END LOOP;
  FOR guard IN
    SELECT tgname, tgfoid::regproc AS function
    FROM pg_trigger
    WHERE tgrelid = parent AND tgtype & 32 <> 0  -- 32: TRUNCATE
  LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION %s()',
                   guard.tgname, partition, guard.function);
  END LOOP;
  -- One number is one event. A unique key of a partitioned table holds the partition column, and (seq, created_at) would
  -- let a number come back a millisecond later. So each month has a key of its own on the number alone. Over all months it
  -- follows from the sequence, which alone gives numbers, and `headrace audit verify` looks for those that came otherwise.
  IF parent = 'headrace.audit_events'::regclass AND to_regclass('headrace.uk_audit_events_seq' || suffix) IS NULL THEN
    EXECUTE format('CREATE UNIQUE INDEX %I ON %s (seq)', 'uk_audit_events_seq' || suffix, partition);
  END IF;
  -- Writes go through the parent and its rights; reading one partition alone is what archiving and sealing do.
  EXECUTE format('GRANT SELECT ON %s TO headrace_app', partition);
  IF owner <> current_user THEN
    EXECUTE format('ALTER TABLE %s OWNER TO %I', partition, owner);
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.adopt_partition(regclass, regclass) IS 'Gives a new partition what PostgreSQL does not pass on: names of indexes, TRUNCATE triggers, rights, the owner.';
REVOKE EXECUTE ON FUNCTION headrace.adopt_partition(regclass, regclass) FROM PUBLIC;

-- The ground that every other migration stands on: the functions that tables share. The runner has made the schema
-- (its own books are in it) and the two roles before.

-- Ids. The first ten of the 26 letters after the prefix hold 50 bits: two zeros and the 48 bits of the millisecond.
-- << and | bind equally and from the left, so the line below reads as it computes: shift what is there, add a letter.
-- Bodies are RETURN expressions: bound when created (no search_path), and inlined into the CHECKs that use them.
CREATE FUNCTION headrace.typeid_millis(id text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 25, 1)) - 1)::bigint
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 24, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 23, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 22, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 21, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 20, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 19, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 18, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 17, 1)) - 1
  << 5 | strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, length(id) - 16, 1)) - 1;
COMMENT ON FUNCTION headrace.typeid_millis(text) IS 'The Unix millisecond inside a TypeID.';

-- Unlike timestamptz + interval, this depends on no session setting: a constraint may rest on it. Seconds apart from
-- milliseconds: an interval is multiplied as a double, which would round the microseconds of distant years.
CREATE FUNCTION headrace.instant_of_millis(millis bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (timestamp '1970-01-01' + millis / 1000 * interval '1 second' + millis % 1000 * interval '1 millisecond')
  AT TIME ZONE 'UTC';
COMMENT ON FUNCTION headrace.instant_of_millis(bigint) IS 'A Unix millisecond as an instant, exactly.';

CREATE FUNCTION headrace.typeid_month(id text) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN date_trunc('month', timestamp '1970-01-01' + headrace.typeid_millis(id) / 1000 * interval '1 second')::date;
COMMENT ON FUNCTION headrace.typeid_month(text) IS 'The first day (UTC) of the month inside a TypeID.';


-- As MySQL's ON UPDATE CURRENT_TIMESTAMP: each table's trigger calls this only when the statement did not set the
-- column itself. clock_timestamp() and not now(): a transaction that waited for the row must not set it back.
CREATE FUNCTION headrace.touch_updated_at() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  NEW.updated_at := pg_catalog.clock_timestamp();
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION headrace.touch_updated_at() IS 'Trigger: moves updated_at.';

-- For state columns. The trigger's WHEN clause knows the allowed moves; whoever arrives here has made another one.
CREATE FUNCTION headrace.refuse_state_move() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  state_column text := TG_ARGV[0];
BEGIN
  RAISE EXCEPTION '%: % cannot move from % to %', TG_TABLE_NAME, state_column,
    pg_catalog.to_jsonb(OLD) ->> state_column, pg_catalog.to_jsonb(NEW) ->> state_column
    USING ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
          COLUMN = state_column, CONSTRAINT = TG_NAME;
END
$$;
COMMENT ON FUNCTION headrace.refuse_state_move() IS 'Trigger: refuses a state change that is not drawn. Argument: the column.';

-- For rows that are evidence (the audit trail, the ledger). Rights refuse the application first; this refuses everyone.
CREATE FUNCTION headrace.refuse_rewriting() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'restrict_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME,
          HINT = 'Only the retention of whole expired partitions removes rows.';
END
$$;
COMMENT ON FUNCTION headrace.refuse_rewriting() IS 'Trigger: refuses UPDATE, DELETE and TRUNCATE.';


-- Row triggers come to a partition by themselves; TRUNCATE triggers, ownership and the names of indexes do not. A
-- violated unique key is reported under the partition's name for it: uk_thing_y2026m11 still says uk_thing.
CREATE FUNCTION headrace.adopt_partition(parent regclass, partition regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
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
    SELECT inhrelid::regclass AS name, relname || suffix AS wanted
    FROM pg_index
    JOIN pg_inherits ON inhrelid = indexrelid
    JOIN pg_class ON pg_class.oid = inhparent
    WHERE indrelid = partition
  LOOP
    EXECUTE format('ALTER INDEX %s RENAME TO %I', index.name, index.wanted);
  END LOOP;
  FOR guard IN
    SELECT tgname, tgfoid::regproc AS function
    FROM pg_trigger
    WHERE tgrelid = parent AND tgtype & 32 <> 0  -- 32: TRUNCATE
  LOOP
    EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION %s()',
                   guard.tgname, partition, guard.function);
  END LOOP;
  -- Writes go through the parent and its rights; reading one partition alone is what archiving and sealing do.
  EXECUTE format('GRANT SELECT ON %s TO headrace_app', partition);
  IF owner <> current_user THEN
    EXECUTE format('ALTER TABLE %s OWNER TO %I', partition, owner);
  END IF;
END
$$;
COMMENT ON FUNCTION headrace.adopt_partition(regclass, regclass) IS 'Gives a new partition what PostgreSQL does not pass on: names of indexes, TRUNCATE triggers, rights, the owner.';

-- Made apart and then attached: the parent is read and written meanwhile, which CREATE … PARTITION OF would not allow.
-- Whoever writes to a table that the parent refers to does wait until this commits: give it a transaction of its own,
-- with a short lock_timeout. Bounds are UTC months, also for an owner whose session lives elsewhere.
CREATE FUNCTION headrace.create_month_partitions(parent regclass, first date, last date) RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog
SET timezone = 'UTC'
AS $$
DECLARE
  home      text;
  stem      text;
  month     timestamp;
  partition text;
  made      integer := 0;
BEGIN
  SELECT nspname, relname INTO home, stem
  FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE pg_class.oid = parent;

  -- Two processes that look ahead at the same moment take turns; rows come and go meanwhile.
  EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);

  FOR month IN
    SELECT generate_series(date_trunc('month', first::timestamp), date_trunc('month', last::timestamp), '1 month')
  LOOP
    partition := format('%I.%I', home, stem || to_char(month, '"_y"YYYY"m"MM'));
    CONTINUE WHEN to_regclass(partition) IS NOT NULL;
    EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)',
                   partition, parent);
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)',
                   parent, partition, month, month + interval '1 month');
    PERFORM headrace.adopt_partition(parent, partition);
    made := made + 1;
  END LOOP;
  RETURN made;
END
$$;
COMMENT ON FUNCTION headrace.create_month_partitions(regclass, date, date) IS 'Makes the missing monthly partitions from the month of first to the month of last; says how many. For the owner; run it as often as you like.';

REVOKE EXECUTE ON FUNCTION
  headrace.adopt_partition(regclass, regclass),
  headrace.create_month_partitions(regclass, date, date)
FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
  headrace.typeid_millis(text),
  headrace.instant_of_millis(bigint),
  headrace.typeid_month(text)
TO headrace_app;

-- The engine: what is waiting or running, who runs it, and what holds for all machines.
--
-- tasks is wide and indexed for people; each change of it costs an entry in every index. So readiness and leases live
-- beside it in a narrow row that is inserted with the task, updated when a worker takes it and deleted when it is over,
-- and the wide row is written once, with the end (docs/why/engine.md has the measurement).

CREATE TABLE headrace.task_types (
  name                varchar(255) PRIMARY KEY,
  queue               varchar(64) NOT NULL DEFAULT 'default'
                      CONSTRAINT ck_task_types_queue CHECK (queue <> ''),
  priority            integer NOT NULL DEFAULT 0,
  max_attempts        integer NOT NULL DEFAULT 3
                      CONSTRAINT ck_task_types_max_attempts CHECK (max_attempts > 0),
  timeout_seconds     integer
                      CONSTRAINT ck_task_types_timeout_seconds CHECK (timeout_seconds > 0),
  emits_events        boolean NOT NULL DEFAULT true,
  followers           text[] NOT NULL DEFAULT '{}',
  max_running         integer
                      CONSTRAINT ck_task_types_max_running CHECK (max_running > 0),
  max_running_per_key integer
                      CONSTRAINT ck_task_types_max_running_per_key CHECK (max_running_per_key > 0),
  payload_schema      jsonb,
  description         text NOT NULL DEFAULT '',
  created_at          timestamptz NOT NULL DEFAULT now(),
  updated_at          timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE headrace.task_types IS 'What workers have registered: how a task of each type is queued, checked and limited, for submitters that do not have the code.';
COMMENT ON COLUMN headrace.task_types.followers IS 'Who moves with its tasks, besides the outbox: for a worker that settles what another, dead one held, and does not have its code.';
COMMENT ON COLUMN headrace.task_types.payload_schema IS 'JSON Schema of the payload; null takes anything.';

CREATE TRIGGER tr_task_types_touch BEFORE UPDATE ON headrace.task_types
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();


CREATE TABLE headrace.queues (
  name                varchar(64) PRIMARY KEY
                      CONSTRAINT ck_queues_name CHECK (name <> ''),
  paused_at           timestamptz,
  max_running         integer
                      CONSTRAINT ck_queues_max_running CHECK (max_running > 0),
  version             integer NOT NULL DEFAULT 0,
  created_at          timestamptz NOT NULL DEFAULT now(),
  updated_at          timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE headrace.queues IS 'What was said about a queue. One that is not here runs, without a limit.';

CREATE TRIGGER tr_queues_touch BEFORE UPDATE ON headrace.queues
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();


CREATE TABLE headrace.workers (
  number              integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id                  varchar(64) NOT NULL,
  host                varchar(255) NOT NULL,
  pid                 integer NOT NULL,
  queues              text[],
  types               text[] NOT NULL,
  labels              jsonb NOT NULL DEFAULT '{}',
  concurrency         integer NOT NULL
                      CONSTRAINT ck_workers_concurrency CHECK (concurrency > 0),
  lease               interval NOT NULL,
  running             integer NOT NULL DEFAULT 0,
  finished            bigint NOT NULL DEFAULT 0,
  asleep              boolean NOT NULL DEFAULT false,
  started_at          timestamptz NOT NULL DEFAULT now(),
  heartbeat_at        timestamptz NOT NULL DEFAULT now(),
  stopping_at         timestamptz,
  ended_at            timestamptz,
  ending              varchar(16)
                      CONSTRAINT ck_workers_ending CHECK (ending IN ('STOPPED', 'DEAD')),
  CONSTRAINT uk_workers_id UNIQUE (id),
  CONSTRAINT ck_workers_ended CHECK ((ended_at IS NULL) = (ending IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX idx_workers_alive ON headrace.workers (number) WHERE ended_at IS NULL;
COMMENT ON TABLE headrace.workers IS 'Worker processes. The heartbeat is the lease of everything a worker holds; by the database''s clock.';
COMMENT ON COLUMN headrace.workers.number IS 'What the narrow queue row names the worker by.';
COMMENT ON COLUMN headrace.workers.queues IS 'Null takes every queue.';
COMMENT ON COLUMN headrace.workers.asleep IS 'Whether a submitter should send a wake-up.';


-- A lane is what a worker can or cannot take from as a whole. Rows of the queue name theirs by a small number; lanes are
-- few beside tasks, are never changed, and never deleted, so that their numbers can be remembered.
CREATE TABLE headrace.task_lanes (
  id                  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue               varchar(64) NOT NULL,
  task_type           varchar(255) NOT NULL,
  user_id             varchar(64) NOT NULL,
  limit_key           varchar(255) NOT NULL DEFAULT '',
  labels              jsonb NOT NULL DEFAULT '{}',
  only_once           boolean NOT NULL DEFAULT false,
  CONSTRAINT uk_task_lanes UNIQUE (queue, task_type, user_id, limit_key, labels, only_once)
);
COMMENT ON TABLE headrace.task_lanes IS 'Queue, type, user, limit and labels: tasks that are alike to a worker.';
COMMENT ON COLUMN headrace.task_lanes.only_once IS 'A single attempt is allowed: taken only when it starts at once, because a worker that dies would spend it.';


CREATE TABLE headrace.task_queue (
  seq                 bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  run_at              timestamptz NOT NULL,
  claimed_at          timestamptz,
  lane_id             integer NOT NULL,
  precedence          integer NOT NULL,
  attempt             integer NOT NULL DEFAULT 0
                      CONSTRAINT ck_task_queue_attempt CHECK (attempt BETWEEN 0 AND 1048575),  -- see fence()
  worker              integer,
  limited             boolean NOT NULL DEFAULT false,
  cancel_requested    boolean NOT NULL DEFAULT false,
  task_id             varchar(64) NOT NULL,
  CONSTRAINT ck_task_queue_claim CHECK ((worker IS NULL) = (claimed_at IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
-- Exactly the order of taking; a row leaves it when it is taken.
CREATE INDEX idx_task_queue_ready ON headrace.task_queue (precedence, lane_id, run_at, seq) WHERE worker IS NULL;
-- Only what a limit counts, so that tasks without one pay nothing.
CREATE INDEX idx_task_queue_limited ON headrace.task_queue (lane_id) WHERE limited;
CREATE INDEX idx_task_queue_cancel ON headrace.task_queue (worker) WHERE cancel_requested;
COMMENT ON TABLE headrace.task_queue IS 'One narrow row for each task that is waiting or running; no foreign keys, for speed: the same statement writes both tables.';
COMMENT ON COLUMN headrace.task_queue.precedence IS 'The priority with its sign turned, so that the index runs one way.';
COMMENT ON COLUMN headrace.task_queue.attempt IS 'With worker, the fence of every later write.';
COMMENT ON COLUMN headrace.task_queue.limited IS 'Whether it takes up a slot of a concurrency limit; slots are counted from these rows, never by a counter.';

ALTER TABLE headrace.tasks
  ADD COLUMN labels    jsonb,
  ADD COLUMN limit_key varchar(255),
  ADD COLUMN queue_seq bigint;
COMMENT ON COLUMN headrace.tasks.queue_seq IS 'The row of task_queue while there is one.';

-- The dispatch service's own definition has none, and one look-up for each line of history is dear.
ALTER TABLE headrace.task_logs DROP CONSTRAINT fk_task_logs_tasks_task_id;


-- An id like those the programs make, for submitters that only have SQL.
CREATE FUNCTION headrace.new_id(prefix text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL SAFE
SET search_path = pg_catalog
AS $$
DECLARE
  letters CONSTANT text := '0123456789abcdefghjkmnpqrstvwxyz';
  bytes   bytea := substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                   || substring(uuid_send(gen_random_uuid()) FROM 7);
  bits    bit varying;
  suffix  text := '';
BEGIN
  bytes := set_byte(bytes, 6, get_byte(bytes, 6) & 15 | 112);  -- the random uuid says version 4, this is 7
  bits := B'00' || ('x' || encode(bytes, 'hex'))::bit(128);
  FOR position IN 0..25 LOOP
    suffix := suffix || substr(letters, substring(bits FROM position * 5 + 1 FOR 5)::bit(5)::integer + 1, 1);
  END LOOP;
  RETURN prefix || '_' || suffix;
END
$$;
COMMENT ON FUNCTION headrace.new_id(text) IS 'A fresh TypeID by the database''s clock.';


CREATE FUNCTION headrace.lane(queue text, task_type text, user_id text, limit_key text, labels jsonb, only_once boolean)
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


-- Which lanes have work, in the order of precedence: for each its first row. It jumps from lane to lane through the
-- index, so the length of a backlog does not matter; lanes for which this worker is not fit are passed over.
CREATE FUNCTION headrace.survey_lanes(
  queues text[], types text[], worker_labels jsonb, after_precedence integer, after_lane integer, most integer
)
RETURNS TABLE (precedence integer, lane_id integer, run_at timestamptz, seq bigint, only_once boolean, wait_seconds double precision)
LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan
AS $$
  WITH RECURSIVE first_of AS (
    (SELECT q.precedence, q.lane_id, q.run_at, q.seq
     FROM headrace.task_queue AS q
     WHERE q.worker IS NULL AND (q.precedence, q.lane_id) > (after_precedence, after_lane)
     ORDER BY q.precedence, q.lane_id, q.run_at, q.seq
     LIMIT 1)
    UNION ALL
    SELECT following.*
    FROM first_of, LATERAL (
      SELECT q.precedence, q.lane_id, q.run_at, q.seq
      FROM headrace.task_queue AS q
      WHERE q.worker IS NULL AND (q.precedence, q.lane_id) > (first_of.precedence, first_of.lane_id)
      ORDER BY q.precedence, q.lane_id, q.run_at, q.seq
      LIMIT 1
    ) AS following
  )
  SELECT first_of.*, lane.only_once, extract(epoch FROM first_of.run_at - now())::double precision
  FROM first_of
  JOIN headrace.task_lanes AS lane ON lane.id = first_of.lane_id
  WHERE lane.task_type = ANY (types)
    AND (queues IS NULL OR lane.queue = ANY (queues))
    AND lane.labels <@ worker_labels
    AND NOT EXISTS (SELECT FROM headrace.queues WHERE name = lane.queue AND paused_at IS NOT NULL)
  LIMIT most
$$;
COMMENT ON FUNCTION headrace.survey_lanes(text[], text[], jsonb, integer, integer, integer) IS 'Lanes with waiting tasks that a worker of these queues, types and labels can take from; wait_seconds > 0 for one that is not due yet.';


-- How many more may run beside those that do. Whoever asks holds the limit's lock until the end of the transaction, so
-- two workers never count the same free slot; 0 when another worker is asking right now.
CREATE FUNCTION headrace.free_slots(scope text, name text, most integer) RETURNS integer
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
      AND CASE scope WHEN 'queue' THEN lane.queue WHEN 'type' THEN lane.task_type
                     ELSE lane.task_type || ' ' || lane.limit_key END = name
  )::integer);
END
$$;


-- A claim as one number, to be looked for in a list.
CREATE FUNCTION headrace.fence(seq bigint, attempt integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN seq << 20 | attempt;
CREATE FUNCTION headrace.fences(seqs bigint[], attempts integer[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(SELECT given.seq << 20 | given.attempt FROM unnest(seqs, attempts) AS given (seq, attempt));


-- Take tasks for a worker: from each lane its share, in order, skipping what others are taking at this moment. The floor
-- of a lane is where the caller knows its first row to be: dead rows before it, which vacuum may not be allowed to
-- remove, are not walked over again.
CREATE FUNCTION headrace.take_tasks(
  worker_number integer, lanes integer[], precedences integer[], floor_run_at timestamptz[], floor_seq bigint[],
  shares integer[], most integer
)
RETURNS TABLE (
  seq bigint, run_at timestamptz, lane_id integer, precedence integer, attempt integer, task_id varchar, claimed_at timestamptz,
  user_id varchar, task_type varchar, payload jsonb, retries integer, max_attempts integer, timeout_seconds integer,
  trace_id varchar, current_step varchar
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
  given  record;
  wanted integer := most;
  free   integer;
  taken  integer;
BEGIN
  -- Held against the reaper: a worker that was given up can take nothing more.
  PERFORM FROM headrace.workers WHERE number = worker_number AND ended_at IS NULL FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'worker % was given up', worker_number USING ERRCODE = 'HR001';
  END IF;

  FOR given IN
    SELECT g.lane, g.precedence, g.floor_run_at, g.floor_seq, g.share,
           lane.queue, lane.task_type, lane.limit_key,
           queue.max_running AS queue_limit, type.max_running AS type_limit,
           CASE WHEN lane.limit_key <> '' THEN type.max_running_per_key END AS key_limit
    FROM unnest(lanes, precedences, floor_run_at, floor_seq, shares) WITH ORDINALITY
         AS g (lane, precedence, floor_run_at, floor_seq, share, position)
    JOIN headrace.task_lanes AS lane ON lane.id = g.lane
    LEFT JOIN headrace.queues AS queue ON queue.name = lane.queue
    LEFT JOIN headrace.task_types AS type ON type.name = lane.task_type
    WHERE queue.paused_at IS NULL
    ORDER BY g.position
  LOOP
    free := least(given.share, wanted);
    IF num_nonnulls(given.queue_limit, given.type_limit, given.key_limit) > 0 THEN
      free := least(
        free,
        headrace.free_slots('queue', given.queue, given.queue_limit),
        headrace.free_slots('type', given.task_type, given.type_limit),
        headrace.free_slots('key', given.task_type || ' ' || given.limit_key, given.key_limit)
      );
      CONTINUE WHEN free <= 0;
    END IF;
    RETURN QUERY
    WITH chosen AS (
      SELECT q.seq
      FROM headrace.task_queue AS q
      WHERE q.worker IS NULL AND q.precedence = given.precedence AND q.lane_id = given.lane
        AND (q.run_at, q.seq) >= (given.floor_run_at, given.floor_seq) AND q.run_at <= now()
      ORDER BY q.run_at, q.seq
      LIMIT free
      FOR UPDATE SKIP LOCKED
    ), taken AS (
      UPDATE headrace.task_queue AS q
      SET worker = worker_number, attempt = q.attempt + 1, claimed_at = now(),
          limited = num_nonnulls(given.queue_limit, given.type_limit, given.key_limit) > 0
      FROM chosen
      WHERE q.seq = chosen.seq
      RETURNING q.seq, q.run_at, q.lane_id, q.precedence, q.attempt, q.task_id, q.claimed_at
    )
    SELECT taken.*, task.user_id, task.task_type, task.payload, task.retries, task.max_attempts, task.timeout_seconds,
           task.trace_id, task.current_step
    FROM taken
    JOIN headrace.tasks AS task ON task.id = taken.task_id;
    GET DIAGNOSTICS taken = ROW_COUNT;
    wanted := wanted - taken;
    EXIT WHEN wanted <= 0;
  END LOOP;
END
$$;
COMMENT ON FUNCTION headrace.take_tasks(integer, integer[], integer[], timestamptz[], bigint[], integer[], integer) IS 'Claims waiting tasks of these lanes for a worker.';


-- Tasks come to their end. Only rows that this worker holds in this attempt count: a late worker changes nothing, and
-- learns it from what is not given back.
--
-- Written so that no statistics can spoil it. What the planner believes of task_queue is always out of date, and a join
-- that it turns the wrong way round costs the square of a batch: so the rows are looked up one by one (OFFSET 0 keeps the
-- subquery from being merged into the join), and deleted by a list of keys. Plans are made for the batch at hand: half a
-- millisecond, where one made for any batch takes three times as long for each row.
CREATE FUNCTION headrace.finish_tasks(
  worker_number integer, worker_name text, seqs bigint[], attempts integer[], statuses text[], results jsonb[],
  error_codes text[], error_messages text[]
)
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  done    bigint[];
  gone    bigint;
  limited boolean;
BEGIN
  WITH held AS MATERIALIZED (
    SELECT given.seq, given.attempt, coalesce(given.status, 'SUCCEEDED') AS status, given.result, given.error_code,
           given.error_message, q.task_id, q.claimed_at, q.limited
    FROM unnest(seqs, attempts, statuses, results, error_codes, error_messages)
         AS given (seq, attempt, status, result, error_code, error_message)
    CROSS JOIN LATERAL (
      SELECT queued.task_id, queued.claimed_at, queued.limited
      FROM headrace.task_queue AS queued
      WHERE queued.seq = given.seq AND queued.worker = worker_number AND queued.attempt = given.attempt
      OFFSET 0
    ) AS q
  ), deleted AS (
    DELETE FROM headrace.task_queue AS queued
    WHERE queued.seq = ANY (seqs) AND queued.worker = worker_number
      AND headrace.fence(queued.seq, queued.attempt) = ANY (headrace.fences(seqs, attempts))
    RETURNING 1
  ), written AS (
    UPDATE headrace.tasks AS task
    SET status = held.status, result = held.result, error_code = held.error_code, error_message = held.error_message,
        attempt = held.attempt, worker_id = worker_name, queue_seq = NULL,
        progress = CASE WHEN held.status = 'SUCCEEDED' THEN 100 ELSE task.progress END, eta_sec = NULL,
        started_at = held.claimed_at, finished_at = now(), updated_at = now(), version = task.version + 1
    FROM held
    -- Not what somebody else has ended meanwhile: below it shows that it is gone.
    WHERE task.id = held.task_id AND task.queue_seq = held.seq
  ), logged AS (
    INSERT INTO headrace.task_logs (task_id, attempt, status, message)
    SELECT held.task_id, held.attempt, held.status, held.error_message FROM held
  )
  SELECT array_agg(held.seq), (SELECT count(*) FROM deleted), coalesce(bool_or(held.limited), false)
  INTO done, gone, limited
  FROM held;

  -- What was ours when the statement began was taken from us before it came to delete it. Nothing counts; try again.
  IF gone <> coalesce(cardinality(done), 0) THEN
    RAISE EXCEPTION 'some of these tasks were taken from worker % meanwhile', worker_number USING ERRCODE = 'HR010';
  END IF;
  -- A slot of a limit is free again: somebody may sleep because there was none.
  IF limited AND EXISTS (SELECT FROM headrace.workers WHERE ended_at IS NULL AND asleep) THEN
    PERFORM pg_notify('headrace_tasks', '');
  END IF;
  RETURN QUERY SELECT unnest(done);
END
$$;
COMMENT ON FUNCTION headrace.finish_tasks(integer, text, bigint[], integer[], text[], jsonb[], text[], text[]) IS 'Writes the end of tasks that a worker holds; gives those that it did hold. Without statuses all have succeeded.';


-- Tasks go back to wait: after a failure that may be tried again, a snooze, an interruption. One that somebody wants to
-- cancel does not go back; the caller ends it. For batches of some hundreds: see finish_tasks about joins.
CREATE FUNCTION headrace.return_tasks(
  worker_number integer, seqs bigint[], attempts integer[], outcomes text[], delays interval[], spends boolean[],
  error_codes text[], error_messages text[]
)
RETURNS TABLE (seq bigint, task_id varchar)
LANGUAGE sql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan
AS $$
  WITH returned AS (
    UPDATE headrace.task_queue AS q
    SET worker = NULL, claimed_at = NULL, limited = false, run_at = now() + given.delay
    FROM unnest(seqs, attempts, outcomes, delays, spends, error_codes, error_messages)
         AS given (seq, attempt, outcome, delay, spends, error_code, error_message)
    WHERE q.seq = given.seq AND q.worker = worker_number AND q.attempt = given.attempt AND NOT q.cancel_requested
    RETURNING q.seq, q.task_id, q.attempt, q.run_at, given.outcome, given.spends, given.error_code, given.error_message
  ), written AS (
    UPDATE headrace.tasks AS task
    SET status = 'QUEUED', attempt = returned.attempt, run_at = returned.run_at, worker_id = NULL, started_at = NULL,
        progress = 0, eta_sec = NULL, queued_at = now(), updated_at = now(), version = task.version + 1,
        retries = task.retries + returned.spends::integer,
        error_code = returned.error_code, error_message = returned.error_message
    FROM returned
    WHERE task.id = returned.task_id
    RETURNING returned.seq, returned.task_id, returned.attempt, returned.outcome, returned.error_message
  ), logged AS (
    INSERT INTO headrace.task_logs (task_id, attempt, status, message)
    SELECT task_id, attempt, outcome, error_message FROM written
  )
  SELECT seq, task_id FROM written
$$;
COMMENT ON FUNCTION headrace.return_tasks(integer, bigint[], integer[], text[], interval[], boolean[], text[], text[]) IS 'Puts tasks that a worker holds back into the queue.';


-- Tasks that were taken and never started go back as if nothing had happened; gives those that did. One that somebody
-- wants to cancel does not go back; the caller ends it.
CREATE FUNCTION headrace.untake_tasks(worker_number integer, seqs bigint[], attempts integer[]) RETURNS SETOF bigint
LANGUAGE sql VOLATILE
SET enable_seqscan = off SET plan_cache_mode = force_custom_plan
AS $$
  UPDATE headrace.task_queue AS q
  SET worker = NULL, claimed_at = NULL, limited = false, attempt = q.attempt - 1
  WHERE q.seq = ANY (seqs) AND q.worker = worker_number AND NOT q.cancel_requested
    AND headrace.fence(q.seq, q.attempt) = ANY (headrace.fences(seqs, attempts))
  RETURNING q.seq
$$;


GRANT SELECT, INSERT, UPDATE, DELETE ON
  headrace.task_types, headrace.queues, headrace.workers, headrace.task_lanes, headrace.task_queue
TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.workers_number_seq, headrace.task_lanes_id_seq, headrace.task_queue_seq_seq TO headrace_app;

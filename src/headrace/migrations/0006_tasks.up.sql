-- Work of every kind: the task, its steps, its result and what it said while it ran.

CREATE TABLE headrace.tasks (
  id                  varchar(64) PRIMARY KEY,
  user_id             varchar(64) NOT NULL,
  task_type           varchar(255) NOT NULL
                      CONSTRAINT ck_tasks_task_type CHECK (task_type <> ''),
  title               varchar(255) NOT NULL,
  payload             jsonb,
  priority            integer NOT NULL DEFAULT 0,

  -- media tasks only, see ck_tasks_media
  input_asset_id      varchar(64),
  quality_level       varchar(16)
                      CONSTRAINT ck_tasks_quality_level CHECK (quality_level IN ('STANDARD', 'HIGH')),
  mode                varchar(16)
                      CONSTRAINT ck_tasks_mode CHECK (mode IN ('AUTO', 'MANUAL')),
  output_format       varchar(16),

  status              varchar(24) NOT NULL DEFAULT 'QUEUED'
                      CONSTRAINT ck_tasks_status CHECK (status IN (
                        'UPLOADED', 'QUEUED', 'RUNNING', 'PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING',
                        'SUCCEEDED', 'FAILED', 'CANCELED'
                      )),
  current_step        varchar(64)
                      CONSTRAINT ck_tasks_current_step CHECK (
                        current_step IN ('PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING')
                        OR current_step ~ '^[a-z][a-z0-9_.-]{0,63}$'
                      ),
  progress            smallint NOT NULL DEFAULT 0
                      CONSTRAINT ck_tasks_progress CHECK (progress BETWEEN 0 AND 100),
  attempt             integer NOT NULL DEFAULT 0
                      CONSTRAINT ck_tasks_attempt CHECK (attempt >= 0),
  retries             integer NOT NULL DEFAULT 0
                      CONSTRAINT ck_tasks_retries CHECK (retries >= 0),
  eta_sec             integer
                      CONSTRAINT ck_tasks_eta_sec CHECK (eta_sec >= 0),
  result              jsonb,
  error_code          varchar(16),
  error_message       text,

  -- the engine's
  queue               varchar(64) NOT NULL DEFAULT 'default'
                      CONSTRAINT ck_tasks_queue CHECK (queue <> ''),
  run_at              timestamptz NOT NULL DEFAULT now(),
  max_attempts        integer NOT NULL DEFAULT 1
                      CONSTRAINT ck_tasks_max_attempts CHECK (max_attempts > 0),
  timeout_seconds     integer
                      CONSTRAINT ck_tasks_timeout_seconds CHECK (timeout_seconds > 0),
  worker_id           varchar(64),
  cancel_requested_at timestamptz,
  schedule_uid        varchar(255),
  trace_id            varchar(64),

  queued_at           timestamptz,
  started_at          timestamptz,
  finished_at         timestamptz,
  version             integer NOT NULL DEFAULT 0,
  created_at          timestamptz NOT NULL DEFAULT now(),
  updated_at          timestamptz NOT NULL DEFAULT now(),
  deleted_at          timestamptz,

  labels              jsonb,
  limit_key           varchar(255),
  queue_seq           bigint,
  grace_seconds       integer
                      CONSTRAINT ck_tasks_grace_seconds CHECK (grace_seconds >= 0),
  extension_seconds   integer
                      CONSTRAINT ck_tasks_extension_seconds CHECK (extension_seconds >= 0),
  left_to_type        text[],
  CONSTRAINT fk_tasks_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  CONSTRAINT fk_tasks_assets_input_asset_id FOREIGN KEY (input_asset_id) REFERENCES headrace.assets (id),
  CONSTRAINT ck_tasks_media CHECK (
    CASE WHEN task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT')
         THEN num_nulls(input_asset_id, quality_level, mode, output_format) = 0
         ELSE num_nonnulls(input_asset_id, quality_level, mode, output_format) = 0 END
  ),
  CONSTRAINT ck_tasks_finished_at CHECK (
    (finished_at IS NOT NULL) = (status IN ('SUCCEEDED', 'FAILED', 'CANCELED'))
  )
);
-- Also serves user and status alone (idx_tasks_user_status of the dispatch service).
CREATE INDEX idx_tasks_user_status_created_at ON headrace.tasks (user_id, status, created_at DESC);
-- DESC twice: a list by status asks for the user upwards, and so never walks here over tasks of other statuses.
CREATE INDEX idx_tasks_user_created_at ON headrace.tasks (user_id DESC, created_at DESC);
CREATE INDEX idx_tasks_status_updated_at ON headrace.tasks (status, updated_at DESC);
CREATE INDEX idx_tasks_asset_id ON headrace.tasks (input_asset_id) WHERE input_asset_id IS NOT NULL;
CREATE INDEX idx_tasks_created_at ON headrace.tasks (created_at);
-- What is to be purged; few at any time.
CREATE INDEX idx_tasks_deleted_at ON headrace.tasks (deleted_at) WHERE deleted_at IS NOT NULL;

COMMENT ON TABLE headrace.tasks IS 'One row for each piece of work, whatever its kind.';
COMMENT ON COLUMN headrace.tasks.task_type IS 'The registered type that runs it. IMAGE, VIDEO, PDF and PPT are the media types.';
COMMENT ON COLUMN headrace.tasks.priority IS 'Higher is taken first.';
COMMENT ON COLUMN headrace.tasks.mode IS 'AUTO unless the user marks the place. No column default: it would fill the column of tasks that have no mode.';
COMMENT ON COLUMN headrace.tasks.status IS 'A media task shows its step as its status; every other running task shows RUNNING.';
COMMENT ON COLUMN headrace.tasks.attempt IS 'The attempt that runs or ran last, from 1; 0 before the first. Part of the fence of every later write.';
COMMENT ON COLUMN headrace.tasks.retries IS 'Failed attempts that were followed by another.';
COMMENT ON COLUMN headrace.tasks.run_at IS 'Not before this time.';
COMMENT ON COLUMN headrace.tasks.schedule_uid IS 'The schedule that fired it. No foreign key: a task outlives its schedule.';
COMMENT ON COLUMN headrace.tasks.queue_seq IS 'The row of task_queue while there is one.';
COMMENT ON COLUMN headrace.tasks.grace_seconds IS 'From the request to stop until it is killed; null: as its type says.';
COMMENT ON COLUMN headrace.tasks.extension_seconds IS 'How much longer than its timeout an attempt may ask to run; null: not at all.';
COMMENT ON COLUMN headrace.tasks.left_to_type IS 'While no worker has declared its type: which of queue, priority, max_attempts and timeout_seconds were not given and are left to it. Null once it is settled.';
COMMENT ON COLUMN headrace.tasks.version IS 'Optimistic lock, and the ETag.';


CREATE TABLE headrace.task_steps (
  id                 bigserial PRIMARY KEY,
  task_id            varchar(64) NOT NULL,
  step_name          varchar(64) NOT NULL
                     CONSTRAINT ck_task_steps_step_name CHECK (
                       step_name IN ('PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING')
                       OR step_name ~ '^[a-z][a-z0-9_.-]{0,63}$'
                     ),
  status             varchar(16) NOT NULL
                     CONSTRAINT ck_task_steps_status CHECK (
                       status IN ('PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'SKIPPED')
                     ),
  attempt            integer NOT NULL DEFAULT 1
                     CONSTRAINT ck_task_steps_attempt CHECK (attempt >= 1),
  started_at         timestamptz,
  ended_at           timestamptz,
  duration_ms        integer
                     CONSTRAINT ck_task_steps_duration_ms CHECK (duration_ms >= 0),
  detail_json        jsonb,
  trace_id           varchar(64),
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_task_steps_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks (id) ON DELETE CASCADE,
  CONSTRAINT uk_task_steps_task_step_attempt UNIQUE (task_id, step_name, attempt)
);
CREATE INDEX idx_task_steps_task_id_created_at ON headrace.task_steps (task_id, created_at DESC);

COMMENT ON TABLE headrace.task_steps IS 'One row for each step and attempt.';
COMMENT ON COLUMN headrace.task_steps.step_name IS 'The four upper-case names are the media steps; other types name theirs in lower case.';


CREATE TABLE headrace.task_results (
  id                 bigserial PRIMARY KEY,
  task_id            varchar(64) NOT NULL,
  result_bucket      varchar(63) NOT NULL DEFAULT 'result',
  result_key         text NOT NULL,
  preview_bucket     varchar(63),
  preview_key        text,
  expire_at          timestamptz,
  metrics_json       jsonb,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_task_results_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks (id) ON DELETE CASCADE,
  CONSTRAINT uk_task_results_task_id UNIQUE (task_id)
);
CREATE INDEX idx_task_results_expire_at ON headrace.task_results (expire_at);

COMMENT ON TABLE headrace.task_results IS 'Where a task''s files lie, and until when.';


CREATE TABLE headrace.task_logs (
  id                 bigserial PRIMARY KEY,
  task_id            varchar(64) NOT NULL,
  attempt            integer NOT NULL DEFAULT 1
                     CONSTRAINT ck_task_logs_attempt CHECK (attempt >= 0),
  status             varchar(32) NOT NULL,
  message            text,
  -- No foreign key, as in the dispatch service's own definition: one look-up for each line of history is dear.
  created_at         timestamptz NOT NULL DEFAULT now()
);
-- With the id behind it, one task's lines come out in the order they were written.
CREATE INDEX idx_task_logs_task ON headrace.task_logs (task_id, id);

COMMENT ON TABLE headrace.task_logs IS 'One row for each attempt''s outcome and for each line that a handler logs.';
COMMENT ON COLUMN headrace.task_logs.attempt IS '0 for what happens to a task outside any attempt, such as a cancellation while queued.';


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
  updated_at          timestamptz NOT NULL DEFAULT now(),
  seen_at             timestamptz NOT NULL DEFAULT now(),
  limit_key           varchar(255)
                      CONSTRAINT ck_task_types_limit_key CHECK (limit_key ~ '^(user|payload(\.[A-Za-z_][A-Za-z0-9_-]*)+)$')
);
COMMENT ON TABLE headrace.task_types IS 'What workers have registered: how a task of each type is queued, checked and limited, for submitters that do not have the code.';
COMMENT ON COLUMN headrace.task_types.followers IS 'Who moves with its tasks, besides the outbox: for a worker that settles what another, dead one held, and does not have its code.';
COMMENT ON COLUMN headrace.task_types.limit_key IS 'What the limit key of a task is: user, or payload.FIELD, a path into the payload; null: what is given with it.';
COMMENT ON COLUMN headrace.task_types.seen_at IS 'When a program last declared it, to the hour, or a worker that is no longer listed was last alive with it.';
COMMENT ON COLUMN headrace.task_types.payload_schema IS 'JSON Schema of the payload; null takes anything.';


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
-- Lanes whose tasks wait for their type to be declared: see undeclared().
CREATE INDEX idx_task_lanes_undeclared ON headrace.task_lanes (task_type) WHERE labels = '{"undeclared type": ""}';
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


GRANT SELECT, INSERT, UPDATE, DELETE ON
  headrace.tasks, headrace.task_steps, headrace.task_results, headrace.task_logs
TO headrace_app;
GRANT USAGE ON SEQUENCE
  headrace.task_steps_id_seq, headrace.task_results_id_seq, headrace.task_logs_id_seq
TO headrace_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON
  headrace.task_types, headrace.queues, headrace.workers, headrace.task_lanes, headrace.task_queue
TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.workers_number_seq, headrace.task_lanes_id_seq, headrace.task_queue_seq_seq TO headrace_app;

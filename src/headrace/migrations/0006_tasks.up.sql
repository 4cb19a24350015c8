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
CREATE INDEX idx_tasks_user_created_at ON headrace.tasks (user_id, created_at DESC) WHERE deleted_at IS NULL;
CREATE INDEX idx_tasks_status_updated_at ON headrace.tasks (status, updated_at DESC);
CREATE INDEX idx_tasks_asset_id ON headrace.tasks (input_asset_id) WHERE input_asset_id IS NOT NULL;
CREATE INDEX idx_tasks_created_at ON headrace.tasks (created_at);

COMMENT ON TABLE headrace.tasks IS 'One row for each piece of work, whatever its kind.';
COMMENT ON COLUMN headrace.tasks.task_type IS 'The registered type that runs it. IMAGE, VIDEO, PDF and PPT are the media types.';
COMMENT ON COLUMN headrace.tasks.priority IS 'Higher is taken first.';
COMMENT ON COLUMN headrace.tasks.mode IS 'AUTO unless the user marks the place. No column default: it would fill the column of tasks that have no mode.';
COMMENT ON COLUMN headrace.tasks.status IS 'A media task shows its step as its status; every other running task shows RUNNING.';
COMMENT ON COLUMN headrace.tasks.attempt IS 'The attempt that runs or ran last, from 1; 0 before the first. Part of the fence of every later write.';
COMMENT ON COLUMN headrace.tasks.retries IS 'Failed attempts that were followed by another.';
COMMENT ON COLUMN headrace.tasks.run_at IS 'Not before this time.';
COMMENT ON COLUMN headrace.tasks.schedule_uid IS 'The schedule that fired it. No foreign key: a task outlives its schedule.';
COMMENT ON COLUMN headrace.tasks.version IS 'Optimistic lock, and the ETag.';

-- The moves that are drawn. An expression and not a table of pairs, because the trigger's WHEN inlines it: a move that
-- is allowed costs two comparisons and no function call.
CREATE FUNCTION headrace.task_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source
  WHEN target          THEN true
  -- Straight to an end, too: a task that is over within a beat has its row written once, with the end.
  WHEN 'QUEUED'        THEN target <> 'UPLOADED'
  WHEN 'RUNNING'       THEN target <> 'UPLOADED'
  -- Steps go forward, some may be left out; back to QUEUED is a retry or a worker that gives the task back.
  WHEN 'PREPROCESSING' THEN target NOT IN ('UPLOADED', 'RUNNING')
  WHEN 'DETECTING'     THEN target NOT IN ('UPLOADED', 'RUNNING', 'PREPROCESSING')
  WHEN 'INPAINTING'    THEN target NOT IN ('UPLOADED', 'RUNNING', 'PREPROCESSING', 'DETECTING')
  WHEN 'PACKAGING'     THEN target NOT IN ('UPLOADED', 'RUNNING', 'PREPROCESSING', 'DETECTING', 'INPAINTING')
  WHEN 'UPLOADED'      THEN target IN ('QUEUED', 'CANCELED', 'FAILED')
  -- Only by hand: a person who tries again.
  WHEN 'FAILED'        THEN target = 'QUEUED'
  WHEN 'CANCELED'      THEN target = 'QUEUED'
  ELSE false  -- SUCCEEDED is the end
END;
COMMENT ON FUNCTION headrace.task_may_move(text, text) IS 'Whether a task may go from one status to another (or stay).';

CREATE TRIGGER tr_tasks_status BEFORE UPDATE OF status ON headrace.tasks
  FOR EACH ROW WHEN (NOT headrace.task_may_move(OLD.status, NEW.status))
  EXECUTE FUNCTION headrace.refuse_state_move('status');
-- The engine's statements set updated_at themselves and never pay for this.
CREATE TRIGGER tr_tasks_touch BEFORE UPDATE ON headrace.tasks
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();


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

CREATE TRIGGER tr_task_results_touch BEFORE UPDATE ON headrace.task_results
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();


CREATE TABLE headrace.task_logs (
  id                 bigserial PRIMARY KEY,
  task_id            varchar(64) NOT NULL,
  attempt            integer NOT NULL DEFAULT 1
                     CONSTRAINT ck_task_logs_attempt CHECK (attempt >= 0),
  status             varchar(32) NOT NULL,
  message            text,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_task_logs_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks (id) ON DELETE CASCADE
);
-- With the id behind it, one task's lines come out in the order they were written.
CREATE INDEX idx_task_logs_task ON headrace.task_logs (task_id, id);

COMMENT ON TABLE headrace.task_logs IS 'One row for each attempt''s outcome and for each line that a handler logs.';
COMMENT ON COLUMN headrace.task_logs.attempt IS '0 for what happens to a task outside any attempt, such as a cancellation while queued.';


GRANT SELECT, INSERT, UPDATE, DELETE ON
  headrace.tasks, headrace.task_steps, headrace.task_results, headrace.task_logs
TO headrace_app;
GRANT USAGE ON SEQUENCE
  headrace.task_steps_id_seq, headrace.task_results_id_seq, headrace.task_logs_id_seq
TO headrace_app;
GRANT EXECUTE ON FUNCTION headrace.task_may_move(text, text) TO headrace_app;

-- When: schedules, and the history of their runs.

CREATE TABLE headrace.scheduled_tasks (
  uid                  varchar(255) PRIMARY KEY,
  user_id              varchar(64) NOT NULL DEFAULT 'u_00000000000000000000000000',
  name                 varchar(255) NOT NULL
                       CONSTRAINT ck_scheduled_tasks_name CHECK (btrim(name) <> ''),
  type                 varchar(255) NOT NULL
                       CONSTRAINT ck_scheduled_tasks_type CHECK (type <> ''),
  description          text,

  is_recurring         boolean NOT NULL DEFAULT false,
  cron_expr            varchar(255),
  "interval"           bigint
                       CONSTRAINT ck_scheduled_tasks_interval CHECK ("interval" > 0),
  timezone             varchar(64) NOT NULL DEFAULT 'UTC'
                       CONSTRAINT ck_scheduled_tasks_timezone CHECK (timezone <> ''),
  next_run             timestamptz,
  misfire_policy       varchar(16) NOT NULL DEFAULT 'latest'
                       CONSTRAINT ck_scheduled_tasks_misfire_policy CHECK (misfire_policy IN ('latest', 'all', 'none')),

  enabled              boolean NOT NULL DEFAULT true,
  max_duration_seconds integer NOT NULL DEFAULT 3600
                       CONSTRAINT ck_scheduled_tasks_max_duration_seconds CHECK (max_duration_seconds > 0),
  max_retries          integer NOT NULL DEFAULT 3
                       CONSTRAINT ck_scheduled_tasks_max_retries CHECK (max_retries >= 0),
  timeout_grace_period integer NOT NULL DEFAULT 30,
  max_concurrent       integer NOT NULL DEFAULT 1
                       CONSTRAINT ck_scheduled_tasks_max_concurrent CHECK (max_concurrent >= 1),
  priority             integer NOT NULL DEFAULT 0,
  labels               jsonb NOT NULL DEFAULT '{}'
                       CONSTRAINT ck_scheduled_tasks_labels CHECK (
                         jsonb_typeof(labels) = 'object' AND NOT labels @? '$.* ? (@.type() <> "string")'
                       ),
  data                 jsonb
                       CONSTRAINT ck_scheduled_tasks_data CHECK (octet_length(data::text) <= 10240),

  total_executions     integer NOT NULL DEFAULT 0,
  success_executions   integer NOT NULL DEFAULT 0,
  failure_executions   integer NOT NULL DEFAULT 0,
  consecutive_failures integer NOT NULL DEFAULT 0,
  skipped_runs         integer NOT NULL DEFAULT 0
                       CONSTRAINT ck_scheduled_tasks_skipped_runs CHECK (skipped_runs >= 0),
  last_executed_at     timestamptz,
  last_failure_error   text,

  version              integer NOT NULL DEFAULT 0,
  created_at           timestamptz NOT NULL DEFAULT now(),
  updated_at           timestamptz NOT NULL DEFAULT now(),
  max_extension_seconds integer NOT NULL DEFAULT 0
                       CONSTRAINT ck_scheduled_tasks_max_extension_seconds CHECK (max_extension_seconds >= 0),
  deleted_at           timestamptz,
  CONSTRAINT fk_scheduled_tasks_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  -- A deleted schedule is gone for everybody at once; its runs, which may be millions, go in batches, and it goes last.
  CONSTRAINT ck_scheduled_tasks_deleted_at CHECK (deleted_at IS NULL OR (NOT enabled AND next_run IS NULL)),
  CONSTRAINT ck_scheduled_tasks_recurrence CHECK (NOT is_recurring OR num_nonnulls(cron_expr, "interval") = 1),
  CONSTRAINT ck_scheduled_tasks_cron_expr CHECK (btrim(cron_expr) <> ''),
  CONSTRAINT ck_scheduled_tasks_timeout_grace_period CHECK (
    timeout_grace_period >= 0 AND timeout_grace_period < max_duration_seconds
  ),
  CONSTRAINT ck_scheduled_tasks_statistics CHECK (
    success_executions >= 0 AND failure_executions >= 0
    AND success_executions + failure_executions <= total_executions
    AND consecutive_failures BETWEEN 0 AND failure_executions
  )
) WITH (fillfactor = 50);  -- counts change with every run and are in no index: room on the page keeps that cheap (HOT)
CREATE UNIQUE INDEX uk_scheduled_tasks_name ON headrace.scheduled_tasks (name) WHERE deleted_at IS NULL;
CREATE INDEX idx_scheduled_tasks_deleted_at ON headrace.scheduled_tasks (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX idx_scheduled_tasks_enabled ON headrace.scheduled_tasks (enabled);
CREATE INDEX idx_scheduled_tasks_next_run ON headrace.scheduled_tasks (next_run);
CREATE INDEX idx_scheduled_tasks_priority ON headrace.scheduled_tasks (priority DESC);
CREATE INDEX idx_scheduled_tasks_type ON headrace.scheduled_tasks (type);
CREATE INDEX idx_scheduled_tasks_labels ON headrace.scheduled_tasks USING gin (labels jsonb_path_ops);

COMMENT ON TABLE headrace.scheduled_tasks IS 'Schedules: what is run, when, how often at once and for how long.';
COMMENT ON COLUMN headrace.scheduled_tasks."interval" IS 'Seconds from one due time to the next, for a recurring schedule without cron_expr.';
COMMENT ON COLUMN headrace.scheduled_tasks.next_run IS 'The next due time; null when there is none, as after a one-off has fired.';
COMMENT ON COLUMN headrace.scheduled_tasks.misfire_policy IS 'Due times missed while nobody ran: the latest, all of them (up to a cap), or none.';
COMMENT ON COLUMN headrace.scheduled_tasks.timeout_grace_period IS 'Seconds between the request to stop and the kill.';
COMMENT ON COLUMN headrace.scheduled_tasks.priority IS 'Higher starts first.';
COMMENT ON COLUMN headrace.scheduled_tasks.labels IS '{name: text}';
COMMENT ON COLUMN headrace.scheduled_tasks.data IS 'The run''s payload, at most 10 KB of text as PostgreSQL writes it (a blank after each colon and comma).';
COMMENT ON COLUMN headrace.scheduled_tasks.max_extension_seconds IS 'How much longer than max_duration_seconds a run may ask to run.';
COMMENT ON COLUMN headrace.scheduled_tasks.total_executions IS 'Runs that are over. With the counts below it changes in the transaction of a run''s end.';
COMMENT ON COLUMN headrace.scheduled_tasks.last_executed_at IS 'When the latest of the runs that are over began.';
COMMENT ON COLUMN headrace.scheduled_tasks.deleted_at IS 'Since when it is gone for everybody; its runs go in batches, and it goes with the last.';
COMMENT ON COLUMN headrace.scheduled_tasks.failure_executions IS 'Ended in failure or timeout. Cancelled and interrupted runs count in the total only.';


CREATE TABLE headrace.task_executions (
  id                 bigserial PRIMARY KEY,
  task_uid           varchar(255) NOT NULL,
  task_name          varchar(255) NOT NULL,
  task_type          varchar(255) NOT NULL,
  execution_uid      varchar(255) NOT NULL
                     CONSTRAINT ck_task_executions_execution_uid CHECK (
                       execution_uid ~ '^exe_[0-7][0-9a-hjkmnp-tv-z]{25}$'
                     ),
  task_id            varchar(64),
  run_by             varchar(255),
  scheduled_at       timestamptz NOT NULL,
  started_at         timestamptz,
  finished_at        timestamptz,
  state              varchar(32) NOT NULL
                     CONSTRAINT ck_task_executions_state CHECK (state IN (
                       'pending', 'running', 'success', 'failure', 'timeout', 'cancelled', 'interrupted'
                     )),
  result             text
                     CONSTRAINT ck_task_executions_result CHECK (octet_length(result) <= 65536),
  error_message      text,
  error_stack        text
                     CONSTRAINT ck_task_executions_error_stack CHECK (octet_length(error_stack) <= 10240),
  duration_ms        bigint NOT NULL DEFAULT 0
                     CONSTRAINT ck_task_executions_duration_ms CHECK (duration_ms >= 0),
  progress           integer NOT NULL DEFAULT 0
                     CONSTRAINT ck_task_executions_progress CHECK (progress BETWEEN 0 AND 100),
  retry_count        integer NOT NULL DEFAULT 0
                     CONSTRAINT ck_task_executions_retry_count CHECK (retry_count >= 0),
  trigger_type       varchar(32) NOT NULL
                     CONSTRAINT ck_task_executions_trigger_type CHECK (trigger_type IN ('scheduled', 'manual')),
  trigger_by         varchar(255),
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  deadline_at        timestamptz,
  user_id            varchar(64) NOT NULL,
  -- No run without its schedule; deleting a schedule is deliberate and audited. To keep the history, disable it.
  CONSTRAINT fk_task_executions_scheduled_tasks_task_uid
    FOREIGN KEY (task_uid) REFERENCES headrace.scheduled_tasks (uid) ON DELETE CASCADE,
  CONSTRAINT fk_task_executions_tasks_task_id
    FOREIGN KEY (task_id) REFERENCES headrace.tasks (id) ON DELETE SET NULL,
  CONSTRAINT uk_task_executions_execution_uid UNIQUE (execution_uid),
  CONSTRAINT ck_task_executions_started CHECK (
    CASE WHEN state = 'pending' THEN run_by IS NULL AND started_at IS NULL
         ELSE run_by IS NOT NULL AND started_at IS NOT NULL END
  ),
  CONSTRAINT ck_task_executions_finished_at CHECK (
    (finished_at IS NOT NULL) = (state IN ('success', 'failure', 'timeout', 'cancelled', 'interrupted'))
    AND (finished_at >= started_at OR finished_at IS NULL)
  ),
  CONSTRAINT ck_task_executions_trigger_by CHECK (trigger_type <> 'manual' OR trigger_by IS NOT NULL)
);
-- Who inserts it has fired it: one due time fires once, and each retry of it is one more row. Runs by hand are free.
CREATE UNIQUE INDEX uk_task_executions_fire ON headrace.task_executions (task_uid, scheduled_at, retry_count)
  WHERE trigger_type = 'scheduled';
-- Lists come in the order of due times.
CREATE INDEX idx_task_executions_task_uid ON headrace.task_executions (task_uid, scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_task_name ON headrace.task_executions (task_name);
CREATE INDEX idx_task_executions_state ON headrace.task_executions (state, scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_scheduled_at ON headrace.task_executions (scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_started_at ON headrace.task_executions (started_at DESC);
CREATE INDEX idx_task_executions_composite ON headrace.task_executions (task_name, state, started_at DESC);
CREATE INDEX idx_task_executions_created_at ON headrace.task_executions (created_at);
CREATE INDEX idx_task_executions_task_id ON headrace.task_executions (task_id) WHERE task_id IS NOT NULL;
-- Few beside the others, and so their own.
CREATE INDEX idx_task_executions_manual ON headrace.task_executions (scheduled_at DESC, execution_uid DESC)
  WHERE trigger_type = 'manual';
-- What takes up a slot of max_concurrent: it has a task. And what waits for one.
CREATE INDEX idx_task_executions_active ON headrace.task_executions (task_uid)
  WHERE state IN ('pending', 'running') AND task_id IS NOT NULL;
CREATE INDEX idx_task_executions_waiting ON headrace.task_executions (task_uid, scheduled_at, id)
  WHERE state = 'pending' AND task_id IS NULL;
-- One index for lists with and without a state: without, the states are merged. Its collation sets it apart from the
-- index on states, which looks as good where a state is rare, and leads through everybody's.
CREATE INDEX idx_task_executions_user_state ON headrace.task_executions
  (user_id, state COLLATE "C", scheduled_at DESC, execution_uid DESC);
CREATE INDEX idx_task_executions_user_manual ON headrace.task_executions
  (user_id, scheduled_at DESC, execution_uid DESC) WHERE trigger_type = 'manual';

COMMENT ON TABLE headrace.task_executions IS 'The runs of schedules: one row for each attempt.';
COMMENT ON COLUMN headrace.task_executions.task_uid IS 'The schedule.';
COMMENT ON COLUMN headrace.task_executions.task_id IS 'The task that runs it.';
COMMENT ON COLUMN headrace.task_executions.run_by IS 'The instance that runs it; null while pending.';
COMMENT ON COLUMN headrace.task_executions.scheduled_at IS 'The due time, not the moment of firing.';
COMMENT ON COLUMN headrace.task_executions.error_stack IS 'At most 10 KB: the top of the stack.';
COMMENT ON COLUMN headrace.task_executions.deadline_at IS 'When it is asked to stop, by the database''s clock; later after an extension.';
COMMENT ON COLUMN headrace.task_executions.user_id IS 'Whose it is: the schedule''s owner, who never changes.';
COMMENT ON COLUMN headrace.task_executions.trigger_by IS 'The user who ran it by hand.';


GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.scheduled_tasks, headrace.task_executions TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.task_executions_id_seq TO headrace_app;

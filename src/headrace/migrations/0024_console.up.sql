-- What the console shows of the past without anything beside the database, and actions on many rows at once.

CREATE TABLE headrace.statistics_minutes (
  minute             timestamptz PRIMARY KEY
                     CONSTRAINT ck_statistics_minutes_minute CHECK (extract(epoch FROM minute)::bigint % 60 = 0),
  workers            integer,
  slots              integer,
  waited             bigint[] NOT NULL,
  ran                bigint[] NOT NULL,
  measured_at        timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT ck_statistics_minutes_workers CHECK ((workers IS NULL) = (slots IS NULL))
);
COMMENT ON TABLE headrace.statistics_minutes IS 'One row for each minute that is over: whoever inserts it measures the minute.';
COMMENT ON COLUMN headrace.statistics_minutes.workers IS 'That were alive; null if nobody looked while it was so.';
COMMENT ON COLUMN headrace.statistics_minutes.slots IS 'How many tasks they may run at once.';
COMMENT ON COLUMN headrace.statistics_minutes.waited IS 'Tasks that ended, by how long they had waited when their last attempt began; operations/statistics/model.py has the bounds.';
COMMENT ON COLUMN headrace.statistics_minutes.ran IS 'The same tasks, by how long that attempt took.';


CREATE TABLE headrace.statistics_queues (
  minute             timestamptz NOT NULL,
  queue              varchar(64) NOT NULL,
  submitted          bigint NOT NULL DEFAULT 0,
  succeeded          bigint NOT NULL DEFAULT 0,
  failed             bigint NOT NULL DEFAULT 0,
  canceled           bigint NOT NULL DEFAULT 0,
  waiting            bigint,
  delayed            bigint,
  running            bigint,
  oldest_seconds     double precision,
  PRIMARY KEY (minute, queue),
  CONSTRAINT fk_statistics_queues_minute FOREIGN KEY (minute)
    REFERENCES headrace.statistics_minutes (minute) ON DELETE CASCADE,
  CONSTRAINT ck_statistics_queues_counts CHECK (least(submitted, succeeded, failed, canceled) >= 0)
);
COMMENT ON TABLE headrace.statistics_queues IS 'What happened in a queue in a minute; no row where nothing did and nothing was there.';
COMMENT ON COLUMN headrace.statistics_queues.waiting IS 'When the minute was measured, up to a bound; null if nobody looked while it was so.';
COMMENT ON COLUMN headrace.statistics_queues.oldest_seconds IS 'For how long the first of those that are due has waited.';


CREATE TABLE headrace.bulk_actions (
  task_id            varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  as_admin           boolean NOT NULL,
  scopes             text[],
  resource           varchar(16) NOT NULL,
  action             varchar(16) NOT NULL,
  filter             jsonb NOT NULL,
  expected           bigint NOT NULL
                     CONSTRAINT ck_bulk_actions_expected CHECK (expected >= 0),
  matched            bigint NOT NULL
                     CONSTRAINT ck_bulk_actions_matched CHECK (matched >= 0),
  done               bigint NOT NULL DEFAULT 0,
  skipped            bigint NOT NULL DEFAULT 0,
  refused            bigint NOT NULL DEFAULT 0,
  refusals           jsonb NOT NULL DEFAULT '[]',
  position_at        timestamptz,
  position_id        varchar(255),
  request_id         varchar(128),
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  finished_at        timestamptz,
  CONSTRAINT fk_bulk_actions_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  CONSTRAINT ck_bulk_actions_action CHECK (
    action IN ('cancel', 'retry', 'delete') AND resource = 'tasks'
    OR action IN ('enable', 'disable') AND resource = 'schedules'
  ),
  CONSTRAINT ck_bulk_actions_counts CHECK (least(done, skipped, refused) >= 0),
  CONSTRAINT ck_bulk_actions_position CHECK ((position_at IS NULL) = (position_id IS NULL))
);
CREATE INDEX idx_bulk_actions_user_created_at ON headrace.bulk_actions (user_id, created_at DESC, task_id DESC);
CREATE INDEX idx_bulk_actions_created_at ON headrace.bulk_actions (created_at DESC, task_id DESC);
COMMENT ON TABLE headrace.bulk_actions IS 'Actions on all rows that a filter matches, each carried out by a task: what was asked, and how far it is.';
COMMENT ON COLUMN headrace.bulk_actions.task_id IS 'The task that carries it out. No foreign key: tasks go by the million, and each would look here.';
COMMENT ON COLUMN headrace.bulk_actions.as_admin IS 'Whether whoever asked acted as an administrator; looked at again when it runs.';
COMMENT ON COLUMN headrace.bulk_actions.scopes IS 'Of the API key that asked; null for a session, which is not narrowed.';
COMMENT ON COLUMN headrace.bulk_actions.expected IS 'How many the person was shown before.';
COMMENT ON COLUMN headrace.bulk_actions.matched IS 'How many there were when it was asked for, up to a bound.';
COMMENT ON COLUMN headrace.bulk_actions.skipped IS 'That were as they should be already, or had moved on.';
COMMENT ON COLUMN headrace.bulk_actions.refusals IS 'The first of those that were refused, and why.';
COMMENT ON COLUMN headrace.bulk_actions.position_at IS 'Up to where it has come, newest first; written with what was done.';


GRANT SELECT, INSERT, UPDATE, DELETE ON
  headrace.statistics_minutes, headrace.statistics_queues, headrace.bulk_actions
TO headrace_app;

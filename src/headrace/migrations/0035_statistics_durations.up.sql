-- Percentiles of durations with a known error, for each task type; answers to users apart from failures; slots in use.

CREATE TABLE headrace.statistics_durations (
  minute             timestamptz NOT NULL,
  task_type          varchar(255) NOT NULL,
  number             bigint NOT NULL
                     CONSTRAINT ck_statistics_durations_number CHECK (number > 0),
  waited_classes     smallint[] NOT NULL,
  waited_counts      bigint[] NOT NULL,
  longest_wait       double precision NOT NULL,
  ran_classes        smallint[] NOT NULL,
  ran_counts         bigint[] NOT NULL,
  longest_run        double precision NOT NULL,
  PRIMARY KEY (minute, task_type),
  CONSTRAINT fk_statistics_durations_minute FOREIGN KEY (minute)
    REFERENCES headrace.statistics_minutes (minute) ON DELETE CASCADE
);
COMMENT ON TABLE headrace.statistics_durations IS 'How long tasks waited and ran that ended in a minute, counted in classes; admin/statistics/model.py has their bounds.';
COMMENT ON COLUMN headrace.statistics_durations.task_type IS 'Empty: all types together.';
COMMENT ON COLUMN headrace.statistics_durations.waited_classes IS 'Before the last attempt began; only classes with a task.';
COMMENT ON COLUMN headrace.statistics_durations.ran_classes IS 'How long the last attempt took.';
COMMENT ON COLUMN headrace.statistics_durations.longest_wait IS 'In seconds, exact: no percentile is above it.';
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.statistics_durations TO headrace_app;

-- The arrays of this table stay for the previous release, which reads them; they are empty from now on.
COMMENT ON COLUMN headrace.statistics_minutes.waited IS 'Unused: statistics_durations has them.';
COMMENT ON COLUMN headrace.statistics_minutes.ran IS 'Unused: statistics_durations has them.';
ALTER TABLE headrace.statistics_minutes ADD COLUMN slots_busy integer;
COMMENT ON COLUMN headrace.statistics_minutes.slots_busy IS 'How many of the slots had a task.';

ALTER TABLE headrace.statistics_queues ADD COLUMN needs_input bigint DEFAULT 0;
COMMENT ON COLUMN headrace.statistics_queues.needs_input IS 'Of the failed: removals with a question to their owner, or without a mark.';

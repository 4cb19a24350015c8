-- Units by user and day, added up once a day is over: a chart of a year reads 365 rows, however many entries there are.

CREATE TABLE headrace.usage_days (
  user_id            varchar(64) NOT NULL,
  day                date NOT NULL,
  used               bigint NOT NULL,
  released           bigint NOT NULL,
  tasks              bigint NOT NULL,
  PRIMARY KEY (user_id, day)
);
COMMENT ON TABLE headrace.usage_days IS 'What settled holds add up to, for each user and day (UTC) that is over. For display: the ledger is the proof.';

CREATE TABLE headrace.usage_days_horizon (
  only_row           boolean PRIMARY KEY DEFAULT true
                     CONSTRAINT ck_usage_days_horizon_only_row CHECK (only_row),
  day                date NOT NULL
);
COMMENT ON TABLE headrace.usage_days_horizon IS 'The first day that is not in usage_days.';

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.usage_days, headrace.usage_days_horizon TO headrace_app;

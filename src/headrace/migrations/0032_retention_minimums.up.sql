-- The application retires months itself, and so must not decide how young a month may be when it goes.

CREATE TABLE headrace.retention_minimums (
  table_name  varchar(63) PRIMARY KEY,
  setting     varchar(63) NOT NULL
              CONSTRAINT uk_retention_minimums_setting UNIQUE,
  keep        interval
              CONSTRAINT ck_retention_minimums_keep CHECK (keep >= interval '0'),
  set_at      timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE headrace.retention_minimums IS 'How long months of each table stay at least, for every role. Only the owner writes it: headrace migrate, from its settings.';
COMMENT ON COLUMN headrace.retention_minimums.setting IS 'The setting of headrace migrate that it is taken from.';
COMMENT ON COLUMN headrace.retention_minimums.keep IS 'From the end of the month. Null keeps it for ever.';

INSERT INTO headrace.retention_minimums (table_name, setting, keep) VALUES
  ('audit_events', 'HEADRACE_RETENTION_AUDIT', interval '180 days'),
  ('webhook_deliveries', 'HEADRACE_RETENTION_DELIVERIES', interval '180 days'),
  ('usage_ledger', 'HEADRACE_RETENTION_LEDGER', interval '1825 days');

GRANT SELECT ON headrace.retention_minimums TO headrace_app;

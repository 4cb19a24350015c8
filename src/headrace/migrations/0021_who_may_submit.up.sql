-- Who may submit which type, what payloads are checked against in the database, and how long tasks of a type are kept.

ALTER TABLE headrace.task_types ADD COLUMN submit varchar(255) DEFAULT 'admins';
ALTER TABLE headrace.task_types ADD CONSTRAINT ck_task_types_submit
  CHECK (submit ~ '^(admins|users|tasks:submit:[A-Za-z][A-Za-z0-9_.:-]*)$') NOT VALID;
-- A row for each kind of work: read in no time.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE headrace.task_types VALIDATE CONSTRAINT ck_task_types_submit;
COMMENT ON COLUMN headrace.task_types.submit IS 'Who may submit it: admins, users, or a scope that an API key must have been given; null: admins.';

ALTER TABLE headrace.task_types ADD COLUMN payload_check jsonb;
COMMENT ON COLUMN headrace.task_types.payload_check IS 'What of payload_schema headrace.payload_fault checks; null: nothing.';

ALTER TABLE headrace.task_types ADD COLUMN retention jsonb;
ALTER TABLE headrace.task_types ADD CONSTRAINT ck_task_types_retention
  CHECK (jsonb_typeof(retention) = 'object') NOT VALID;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE headrace.task_types VALIDATE CONSTRAINT ck_task_types_retention;
COMMENT ON COLUMN headrace.task_types.retention IS '{status: seconds}: how long a task is kept after it has ended like this; null seconds: for ever. What is not there is as the settings say.';

ALTER TABLE headrace.retention_runs ADD COLUMN marks jsonb;
COMMENT ON COLUMN headrace.retention_runs.marks IS 'Up to where earlier runs have looked, by rule: what lies before is not looked at again every time.';

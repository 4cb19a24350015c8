-- What a task costs, as data: computed alike by every submitter, and settled by the database with the task's end.

ALTER TABLE headrace.task_types ADD COLUMN units varchar(255);
ALTER TABLE headrace.task_types ADD CONSTRAINT ck_task_types_units
  CHECK (units ~ '^([1-9][0-9]{0,8}|payload(\.[A-Za-z_][A-Za-z0-9_-]*)+)$') NOT VALID;
-- A row for each kind of work: read in no time.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE headrace.task_types VALIDATE CONSTRAINT ck_task_types_units;
COMMENT ON COLUMN headrace.task_types.units IS 'What a task costs: a whole number, or payload.FIELD, a path into the payload; null: nothing.';

ALTER TABLE headrace.task_queue ADD COLUMN units integer;
ALTER TABLE headrace.task_queue ADD COLUMN used integer;
-- Not validated: it holds for whatever is written, and in the rows of before both are null. Every worker waits for a lock
-- of this table.
ALTER TABLE headrace.task_queue ADD CONSTRAINT ck_task_queue_used
  CHECK (used IS NULL OR (units IS NOT NULL AND used BETWEEN 0 AND units)) NOT VALID;
COMMENT ON COLUMN headrace.task_queue.units IS 'What the ledger holds for it; null: it costs nothing. Whoever ends the task settles it.';
COMMENT ON COLUMN headrace.task_queue.used IS 'What its handler says it has used, in this attempt; null: all of it.';


CREATE TABLE headrace.ledger_verification (
  id                 smallint PRIMARY KEY DEFAULT 1
                     CONSTRAINT ck_ledger_verification_id CHECK (id = 1),
  started_at         timestamptz NOT NULL,
  finished_at        timestamptz NOT NULL,
  entries            bigint NOT NULL,
  entitlements       bigint NOT NULL,
  archived_months    integer NOT NULL,
  fault_count        bigint NOT NULL
                     CONSTRAINT ck_ledger_verification_fault_count CHECK (fault_count >= 0),
  faults             jsonb NOT NULL
);
COMMENT ON TABLE headrace.ledger_verification IS 'What the last look through the ledger found; one row.';
COMMENT ON COLUMN headrace.ledger_verification.faults IS 'The first hundred.';
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.ledger_verification TO headrace_app;

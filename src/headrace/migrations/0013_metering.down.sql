DROP TABLE headrace.ledger_verification;
-- squawk-ignore ban-drop-column
ALTER TABLE headrace.task_queue DROP COLUMN used;
-- squawk-ignore ban-drop-column
ALTER TABLE headrace.task_queue DROP COLUMN units;
-- squawk-ignore ban-drop-column
ALTER TABLE headrace.task_types DROP COLUMN units;

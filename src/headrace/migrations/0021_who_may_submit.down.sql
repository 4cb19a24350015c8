-- squawk-ignore ban-drop-column
ALTER TABLE headrace.retention_runs DROP COLUMN marks;
-- squawk-ignore ban-drop-column
ALTER TABLE headrace.task_types DROP COLUMN retention;
-- squawk-ignore ban-drop-column
ALTER TABLE headrace.task_types DROP COLUMN payload_check;
-- squawk-ignore ban-drop-column
ALTER TABLE headrace.task_types DROP COLUMN submit;

DROP TABLE headrace.removal_passwords;
ALTER TABLE headrace.task_types DROP COLUMN limited_by_plan;

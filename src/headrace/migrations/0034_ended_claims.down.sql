ALTER TABLE headrace.task_queue DROP COLUMN ended;

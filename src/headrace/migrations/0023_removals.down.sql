ALTER TABLE headrace.task_results DROP COLUMN comparison_key, DROP COLUMN comparison_size_bytes;
DROP TABLE headrace.removals;

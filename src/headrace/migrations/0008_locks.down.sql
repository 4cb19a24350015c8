DROP TABLE headrace.lock_fences;
DROP TABLE headrace.task_locks;

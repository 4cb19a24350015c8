DROP TABLE headrace.lock_fences;
DROP TABLE headrace.task_locks;
DROP FUNCTION headrace.lock_may_move(text, text);

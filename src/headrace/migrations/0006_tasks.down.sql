DROP TABLE headrace.task_logs;
DROP TABLE headrace.task_results;
DROP TABLE headrace.task_steps;
DROP TABLE headrace.tasks;
DROP FUNCTION headrace.task_may_move(text, text);

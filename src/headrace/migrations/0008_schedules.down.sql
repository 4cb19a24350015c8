DROP TABLE headrace.task_executions;
DROP FUNCTION headrace.execution_may_move(text, text);
DROP TABLE headrace.scheduled_tasks;

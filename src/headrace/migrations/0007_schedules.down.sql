DROP TABLE headrace.task_executions;
DROP TABLE headrace.scheduled_tasks;

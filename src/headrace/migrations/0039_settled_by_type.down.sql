DROP FUNCTION headrace.started_tasks(integer, bigint[], integer[]);

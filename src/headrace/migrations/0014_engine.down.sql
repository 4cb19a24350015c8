DROP FUNCTION headrace.untake_tasks(integer, bigint[], integer[]);
DROP FUNCTION headrace.return_tasks(integer, bigint[], integer[], text[], interval[], boolean[], text[], text[]);
DROP FUNCTION headrace.finish_tasks(integer, text, bigint[], integer[], text[], jsonb[], text[], text[]);
DROP FUNCTION headrace.take_tasks(integer, integer[], integer[], timestamptz[], bigint[], integer[], integer);
DROP FUNCTION headrace.fences(bigint[], integer[]);
DROP FUNCTION headrace.fence(bigint, integer);
DROP FUNCTION headrace.free_slots(text, text, integer);
DROP FUNCTION headrace.survey_lanes(text[], text[], jsonb, integer, integer, integer);
DROP FUNCTION headrace.lane(text, text, text, text, jsonb, boolean);
DROP FUNCTION headrace.new_id(text);
DELETE FROM headrace.task_logs AS log WHERE NOT EXISTS (SELECT FROM headrace.tasks WHERE id = log.task_id);
ALTER TABLE headrace.task_logs
  ADD CONSTRAINT fk_task_logs_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks (id) ON DELETE CASCADE;
ALTER TABLE headrace.tasks DROP COLUMN queue_seq, DROP COLUMN limit_key, DROP COLUMN labels;
DROP TABLE headrace.task_queue;
DROP TABLE headrace.task_lanes;
DROP TABLE headrace.workers;
DROP TABLE headrace.queues;
DROP TABLE headrace.task_types;

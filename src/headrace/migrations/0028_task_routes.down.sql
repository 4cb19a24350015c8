ALTER TABLE headrace.task_queue DROP COLUMN delayed;
ALTER TABLE headrace.task_queue DROP COLUMN route_id;
ALTER TABLE headrace.tasks DROP COLUMN idempotency_key;
ALTER TABLE headrace.task_lanes DROP COLUMN retired_at;
ALTER TABLE headrace.task_lanes DROP COLUMN created_at;
ALTER TABLE headrace.task_lanes DROP COLUMN route_id;
DROP TABLE headrace.task_routes;

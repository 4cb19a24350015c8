DROP TABLE headrace.relays;
ALTER TABLE headrace.task_types DROP COLUMN emits_always;
ALTER TABLE headrace.outbox_events DROP COLUMN user_id;
DROP TABLE headrace.event_interests;

CREATE INDEX idx_outbox_events_event_type_created_at ON headrace.outbox_events (event_type, created_at DESC);
CREATE INDEX idx_outbox_events_aggregate ON headrace.outbox_events (aggregate_type, aggregate_id);
DROP TABLE headrace.broker_messages;
DROP TABLE headrace.relays;
ALTER TABLE headrace.task_types DROP COLUMN emits_always;
ALTER TABLE headrace.outbox_events DROP COLUMN user_id;
DROP TABLE headrace.event_interests;

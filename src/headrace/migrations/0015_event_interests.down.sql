ALTER TABLE headrace.outbox_events DROP COLUMN user_id;
DROP TABLE headrace.event_interests;

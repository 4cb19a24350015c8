DROP TABLE headrace.outbox_events;

DROP VIEW headrace.audit_logs;
DROP TABLE headrace.audit_events;  -- with its partitions and its sequence

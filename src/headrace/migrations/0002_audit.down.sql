DROP VIEW IF EXISTS headrace.audit_logs;
DROP TABLE headrace.audit_imports;
DROP TABLE headrace.audit_leaves;
DROP TABLE headrace.audit_seals;
DROP TABLE headrace.audit_events;

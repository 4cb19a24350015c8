DROP TABLE headrace.audit_imports, headrace.audit_leaves, headrace.audit_seals;
DROP INDEX headrace.idx_audit_events_username, headrace.idx_audit_events_seq;

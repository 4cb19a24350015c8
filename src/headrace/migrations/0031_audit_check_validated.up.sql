-- Reads the trail; everybody reads and writes meanwhile.
ALTER TABLE headrace.audit_events VALIDATE CONSTRAINT ck_audit_events_rules;

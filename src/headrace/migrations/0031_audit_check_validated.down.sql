ALTER TABLE headrace.audit_events
  DROP CONSTRAINT ck_audit_events_rules,
  ADD CONSTRAINT ck_audit_events_rules CHECK (headrace.is_audit_event(
    id, "timestamp", created_at, action, resource_type, resource, "user", diff_object, client_ip
  )) NOT VALID;

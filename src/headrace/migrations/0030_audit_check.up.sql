-- One CHECK in the place of nine. Whatever is there has passed those, and is read again by the next migration, which
-- holds up nobody; this one changes only the catalog.
ALTER TABLE headrace.audit_events
  ADD CONSTRAINT ck_audit_events_rules CHECK (headrace.is_audit_event(
    id, "timestamp", created_at, action, resource_type, resource, "user", diff_object, client_ip
  )) NOT VALID,
  DROP CONSTRAINT ck_audit_events_timestamp,
  DROP CONSTRAINT ck_audit_events_action,
  DROP CONSTRAINT ck_audit_events_resource_type,
  DROP CONSTRAINT ck_audit_events_id,
  DROP CONSTRAINT ck_audit_events_created_at,
  DROP CONSTRAINT ck_audit_events_resource,
  DROP CONSTRAINT ck_audit_events_user,
  DROP CONSTRAINT ck_audit_events_diff_object,
  DROP CONSTRAINT ck_audit_events_client_ip;

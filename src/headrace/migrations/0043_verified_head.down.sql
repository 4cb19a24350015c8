DROP TABLE headrace.audit_verified_head;

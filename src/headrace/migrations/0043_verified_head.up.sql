-- Up to where the audit trail was verified: the next verification continues there.

CREATE TABLE headrace.audit_verified_head (
  only_row           boolean PRIMARY KEY DEFAULT true
                     CONSTRAINT ck_audit_verified_head_only_row CHECK (only_row),
  head               text NOT NULL,
  mac                bytea NOT NULL,
  verified_at        timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE headrace.audit_verified_head IS 'The last seal up to which the audit trail was verified, as JSON with an HMAC under a key of the deployment.';
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.audit_verified_head TO headrace_app;

-- For operators: settings that change while the product runs, and the risks that are known.

CREATE TABLE headrace.system_configs (
  id                 bigserial PRIMARY KEY,
  config_key         varchar(128) NOT NULL,
  config_scope       varchar(32) NOT NULL DEFAULT 'GLOBAL'
                     CONSTRAINT ck_system_configs_config_scope CHECK (config_scope IN ('GLOBAL', 'TENANT', 'USER')),
  scope_id           varchar(64) NOT NULL DEFAULT '',
  config_value       jsonb NOT NULL,
  version            integer NOT NULL DEFAULT 1,
  is_active          boolean NOT NULL DEFAULT true,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT uk_system_configs_key_scope UNIQUE (config_key, config_scope, scope_id),
  CONSTRAINT ck_system_configs_scope_id CHECK ((scope_id = '') = (config_scope = 'GLOBAL'))
);
CREATE INDEX idx_system_configs_active_key ON headrace.system_configs (is_active, config_key);

COMMENT ON TABLE headrace.system_configs IS 'Settings for everyone, a tenant or a user.';
COMMENT ON COLUMN headrace.system_configs.scope_id IS 'Whose: empty for GLOBAL, otherwise the tenant or the user.';
COMMENT ON COLUMN headrace.system_configs.version IS 'Counts the changes; optimistic lock, and the ETag.';

CREATE TRIGGER tr_system_configs_touch BEFORE UPDATE ON headrace.system_configs
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();


CREATE TABLE headrace.tech_risk_ledger (
  id                 bigserial PRIMARY KEY,
  risk_id            varchar(64) NOT NULL,
  category           varchar(32) NOT NULL
                     CONSTRAINT ck_tech_risk_ledger_category CHECK (
                       category IN ('LICENSE', 'TECHNICAL', 'COST', 'COMPLIANCE')
                     ),
  severity           varchar(16) NOT NULL
                     CONSTRAINT ck_tech_risk_ledger_severity CHECK (severity IN ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
  status             varchar(16) NOT NULL
                     CONSTRAINT ck_tech_risk_ledger_status CHECK (
                       status IN ('OPEN', 'MITIGATING', 'ACCEPTED', 'CLOSED')
                     ),
  trigger_condition  text NOT NULL,
  mitigation_plan    text NOT NULL,
  owner              varchar(64) NOT NULL,
  refs_json          jsonb,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT uk_tech_risk_ledger_risk_id UNIQUE (risk_id)
);
CREATE INDEX idx_tech_risk_ledger_status_severity ON headrace.tech_risk_ledger (status, severity);
CREATE INDEX idx_tech_risk_ledger_owner ON headrace.tech_risk_ledger (owner);

COMMENT ON TABLE headrace.tech_risk_ledger IS 'Known risks, who owns them and what is done about them.';
COMMENT ON COLUMN headrace.tech_risk_ledger.refs_json IS 'Where it shows: by convention {"trace_ids": [trace id of audit_logs]} and links.';

CREATE TRIGGER tr_tech_risk_ledger_touch BEFORE UPDATE ON headrace.tech_risk_ledger
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.system_configs, headrace.tech_risk_ledger TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.system_configs_id_seq, headrace.tech_risk_ledger_id_seq TO headrace_app;

DROP INDEX headrace.idx_tech_risk_ledger_created_at;
DROP INDEX headrace.idx_tech_risk_ledger_refs;
ALTER TABLE headrace.tech_risk_ledger DROP COLUMN version;
DROP INDEX headrace.idx_system_configs_created_at;
DROP INDEX headrace.idx_system_configs_scope_id;
DROP TRIGGER tr_system_configs_tell ON headrace.system_configs;
DROP FUNCTION headrace.tell_of_config();

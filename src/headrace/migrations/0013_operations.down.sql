DROP TABLE headrace.tech_risk_ledger;
DROP TABLE headrace.system_configs;

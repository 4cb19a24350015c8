DROP TABLE headrace.retention_runs;
DROP TABLE headrace.row_archives;
DROP TABLE headrace.archives;
DROP TABLE headrace.tech_risk_ledger;
DROP TABLE headrace.system_configs;

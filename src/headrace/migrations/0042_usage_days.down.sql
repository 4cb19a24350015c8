DROP TABLE headrace.usage_days_horizon;
DROP TABLE headrace.usage_days;

DROP TABLE headrace.retention_minimums;

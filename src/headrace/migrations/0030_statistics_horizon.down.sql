ALTER TABLE headrace.statistics_minutes DROP COLUMN next_xid;
ALTER TABLE headrace.statistics_minutes DROP COLUMN oldest_xid;

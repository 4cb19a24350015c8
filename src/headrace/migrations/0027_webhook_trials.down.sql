ALTER TABLE headrace.webhook_health DROP COLUMN failed_trials;

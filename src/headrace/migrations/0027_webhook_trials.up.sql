-- The breaker of an endpoint doubles its pause with each try after a pause that fails, not with each failure: deliveries
-- that were under way when it opened fail together.
ALTER TABLE headrace.webhook_health
  ADD COLUMN failed_trials integer NOT NULL DEFAULT 0
             CONSTRAINT ck_webhook_health_failed_trials CHECK (failed_trials >= 0);

COMMENT ON COLUMN headrace.webhook_health.failed_trials IS 'Tries after a pause of the breaker that failed, in a row: each doubles the next pause.';

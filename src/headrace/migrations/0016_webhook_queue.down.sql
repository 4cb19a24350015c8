DROP TABLE headrace.webhook_health;
DROP TABLE headrace.webhook_queue;
DROP INDEX headrace.idx_webhook_deliveries_endpoint_id;
COMMENT ON COLUMN headrace.webhook_deliveries.next_retry_at IS NULL;
ALTER TABLE headrace.webhook_deliveries DROP COLUMN error;
ALTER TABLE headrace.webhook_endpoints
  DROP COLUMN status_reason, DROP COLUMN every_user, DROP COLUMN ordered, DROP COLUMN task_types;

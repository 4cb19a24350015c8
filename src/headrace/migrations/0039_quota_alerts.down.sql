DELETE FROM headrace.notifications WHERE type = 'QUOTA_REACHED';
ALTER TABLE headrace.notifications DROP CONSTRAINT ck_notifications_type;
ALTER TABLE headrace.notifications ADD CONSTRAINT ck_notifications_type CHECK (
  type IN ('TASK_SUCCEEDED', 'TASK_FAILED', 'SUBSCRIPTION_ACTIVATED', 'SUBSCRIPTION_EXPIRING', 'ACCOUNT_DELETE_COMPLETED')
);
ALTER TABLE headrace.entitlements DROP COLUMN alerted_percent;

-- headrace: no-transaction
-- Notices of a quota that is nearly or wholly used, once for each period. The check is validated without its lock on writes.
ALTER TABLE headrace.entitlements ADD COLUMN IF NOT EXISTS alerted_percent smallint;
COMMENT ON COLUMN headrace.entitlements.alerted_percent IS 'The highest share of the quota, in percent, of which the user was notified.';
ALTER TABLE headrace.notifications DROP CONSTRAINT IF EXISTS ck_notifications_type;
ALTER TABLE headrace.notifications ADD CONSTRAINT ck_notifications_type CHECK (type IN (
  'TASK_SUCCEEDED', 'TASK_FAILED', 'SUBSCRIPTION_ACTIVATED', 'SUBSCRIPTION_EXPIRING', 'QUOTA_REACHED',
  'ACCOUNT_DELETE_COMPLETED'
)) NOT VALID;
ALTER TABLE headrace.notifications VALIDATE CONSTRAINT ck_notifications_type;

DROP TABLE headrace.payment_orders;
DROP INDEX headrace.idx_entitlements_period_end;
DROP INDEX headrace.uk_entitlements_user_plan_period;
DROP INDEX headrace.idx_subscriptions_expire_at;
DROP INDEX headrace.uk_subscriptions_user_live;
ALTER TABLE headrace.entitlements DROP COLUMN features_json;
COMMENT ON COLUMN headrace.subscriptions.canceled_at IS NULL;
COMMENT ON COLUMN headrace.subscriptions.expire_at IS NULL;
COMMENT ON COLUMN headrace.subscriptions.effective_at IS NULL;
COMMENT ON COLUMN headrace.subscriptions.external_order_id IS NULL;
ALTER TABLE headrace.subscriptions DROP COLUMN expiring_told_for;
ALTER TABLE headrace.subscriptions DROP COLUMN version;
ALTER TABLE headrace.plans DROP COLUMN version;
-- Who has used it keeps it: the ledger refers to it.
DELETE FROM headrace.plans
WHERE id = 'pln_00000000000000000000000000'
  AND NOT EXISTS (SELECT FROM headrace.entitlements WHERE plan_id = 'pln_00000000000000000000000000');

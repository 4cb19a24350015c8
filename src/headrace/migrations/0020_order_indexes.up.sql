-- headrace: no-transaction
-- A month that was refunded can be bought again: what was suspended does not stand in its way.
DROP INDEX CONCURRENTLY IF EXISTS headrace.uk_entitlements_subscription_start;
CREATE UNIQUE INDEX CONCURRENTLY uk_entitlements_subscription_start ON headrace.entitlements (subscription_id, period_start)
  WHERE subscription_id IS NOT NULL AND status <> 'SUSPENDED';
DROP INDEX CONCURRENTLY IF EXISTS headrace.uk_entitlements_subscription_period;
-- Orders that were closed, by when nobody could pay them any more: they are asked about once more then.
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_payment_orders_closed;
CREATE INDEX CONCURRENTLY idx_payment_orders_closed ON headrace.payment_orders (expires_at) WHERE status = 'CLOSED';
-- Orders that somebody has to look at, which are asked for all the time; there are few.
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_payment_orders_problem;
CREATE INDEX CONCURRENTLY idx_payment_orders_problem ON headrace.payment_orders (problem) WHERE problem IS NOT NULL;

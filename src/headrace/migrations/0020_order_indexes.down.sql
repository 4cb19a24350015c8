DROP INDEX headrace.idx_payment_orders_problem;
DROP INDEX headrace.idx_payment_orders_closed;
-- A month that was refunded and bought again stands in its way; its units are gone, and only its start says when it was.
UPDATE headrace.entitlements SET period_start = period_start + interval '1 microsecond' * own.number
FROM (
  SELECT id, row_number() OVER (PARTITION BY subscription_id, period_start ORDER BY status <> 'SUSPENDED' DESC, id) - 1 AS number
  FROM headrace.entitlements WHERE subscription_id IS NOT NULL
) AS own
WHERE entitlements.id = own.id AND own.number > 0;
CREATE UNIQUE INDEX uk_entitlements_subscription_period ON headrace.entitlements (subscription_id, period_start)
  WHERE subscription_id IS NOT NULL;
DROP INDEX headrace.uk_entitlements_subscription_start;

DROP TABLE headrace.usage_ledger;  -- with its partitions
DROP TABLE headrace.entitlements;
DROP TABLE headrace.subscriptions;
DROP TABLE headrace.plans;

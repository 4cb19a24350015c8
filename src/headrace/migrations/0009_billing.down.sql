DROP TABLE headrace.usage_ledger;
DROP TABLE headrace.entitlements;
DROP TABLE headrace.subscriptions;
DROP TABLE headrace.plans;

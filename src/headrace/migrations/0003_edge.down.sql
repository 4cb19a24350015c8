DROP TABLE headrace.rate_limits;
DROP TABLE headrace.idempotency_keys;

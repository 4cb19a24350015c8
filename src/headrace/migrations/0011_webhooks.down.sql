DROP TABLE headrace.webhook_deliveries;  -- with its partitions and its sequence
DROP TABLE headrace.webhook_endpoints;

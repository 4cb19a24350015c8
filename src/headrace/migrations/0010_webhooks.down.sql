DROP TABLE headrace.webhook_deliveries;
DROP TABLE headrace.webhook_endpoints;

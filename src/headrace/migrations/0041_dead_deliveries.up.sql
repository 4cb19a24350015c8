-- headrace: no-transaction
-- What senders gave up is few, and is what operators look for; other attempts pay nothing.
-- headrace: month by month
CREATE INDEX CONCURRENTLY idx_webhook_deliveries_dead ON headrace.webhook_deliveries (id DESC) WHERE status = 'DEAD';

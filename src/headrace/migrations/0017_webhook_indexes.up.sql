-- headrace: no-transaction
-- An administrator's endpoints for everybody's events, which are asked for with every event; there are few.
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_webhook_endpoints_every_user;
CREATE INDEX CONCURRENTLY idx_webhook_endpoints_every_user ON headrace.webhook_endpoints (id) WHERE every_user;
-- Lists of one user's notifications, newest first, and what came after the one that was seen last.
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_notifications_user_id;
CREATE INDEX CONCURRENTLY idx_notifications_user_id ON headrace.notifications (user_id, id DESC);

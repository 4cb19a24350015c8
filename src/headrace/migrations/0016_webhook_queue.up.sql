-- What webhooks need beyond the documents' tables: a narrow queue of what is still to be sent, how endpoints fare, and a few
-- columns.

ALTER TABLE headrace.webhook_endpoints
  ADD COLUMN task_types     jsonb
                            CONSTRAINT ck_webhook_endpoints_task_types CHECK (jsonb_typeof(task_types) = 'array'),
  ADD COLUMN ordered        boolean NOT NULL DEFAULT false,
  ADD COLUMN every_user     boolean NOT NULL DEFAULT false,
  ADD COLUMN status_reason  varchar(32)
                            CONSTRAINT ck_webhook_endpoints_status_reason CHECK (
                              status_reason IN ('by_hand', 'failing', 'gone')
                            );

COMMENT ON COLUMN headrace.webhook_endpoints.task_types IS '[task type]: of events of tasks, only those of these types. Null: of every type.';
COMMENT ON COLUMN headrace.webhook_endpoints.ordered IS 'Events of one aggregate are sent one after the other: the next when the one before is through or given up.';
COMMENT ON COLUMN headrace.webhook_endpoints.every_user IS 'An administrator''s endpoint for everybody''s events.';
COMMENT ON COLUMN headrace.webhook_endpoints.status_reason IS 'Why it is not ACTIVE: by_hand, failing (for days), gone (it answered 410).';

ALTER TABLE headrace.webhook_deliveries ADD COLUMN error text;
COMMENT ON COLUMN headrace.webhook_deliveries.error IS 'Why there is no answer, or why no further attempt is made.';
COMMENT ON COLUMN headrace.webhook_deliveries.next_retry_at IS 'PENDING: not before this time. RETRYING: when the next attempt is due; null once it has begun.';

-- Lists of one endpoint's deliveries, newest first. Nothing has written deliveries before this release, and an index over
-- partitions cannot be built beside their use.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX idx_webhook_deliveries_endpoint_id ON headrace.webhook_deliveries (endpoint_id, id DESC);

-- One row for each delivery that is not over, however many attempts it takes. Claims, leases and waiting happen here, so
-- that the wide rows beside it are written once when they are made and once when an attempt has ended, and a history of
-- any length costs a claim nothing.
CREATE TABLE headrace.webhook_queue (
  id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  endpoint_id        varchar(64) NOT NULL,
  delivery_id        varchar(64) NOT NULL,
  period             date NOT NULL,
  attempt            integer NOT NULL DEFAULT 1
                     CONSTRAINT ck_webhook_queue_attempt CHECK (attempt >= 1),
  is_pending         boolean NOT NULL DEFAULT true,
  failures           integer NOT NULL DEFAULT 0
                     CONSTRAINT ck_webhook_queue_failures CHECK (failures >= 0),
  losses             integer NOT NULL DEFAULT 0
                     CONSTRAINT ck_webhook_queue_losses CHECK (losses >= 0),
  aggregate          varchar(160),
  due_at             timestamptz NOT NULL DEFAULT now(),
  leased_until       timestamptz,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_webhook_queue_endpoints_endpoint_id
    FOREIGN KEY (endpoint_id) REFERENCES headrace.webhook_endpoints (id) ON DELETE CASCADE,
  CONSTRAINT uk_webhook_queue_delivery_id UNIQUE (delivery_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
-- "Which endpoints have something to send, and what first?", without reading what is being sent already.
CREATE INDEX idx_webhook_queue_ready ON headrace.webhook_queue (endpoint_id, due_at, id) WHERE leased_until IS NULL;
CREATE INDEX idx_webhook_queue_leased ON headrace.webhook_queue (leased_until) WHERE leased_until IS NOT NULL;
-- "Is an earlier event of this aggregate still to be sent here?"
CREATE INDEX idx_webhook_queue_aggregate ON headrace.webhook_queue (endpoint_id, aggregate, id)
  WHERE aggregate IS NOT NULL;

COMMENT ON TABLE headrace.webhook_queue IS 'Deliveries that are not over: what senders claim.';
COMMENT ON COLUMN headrace.webhook_queue.delivery_id IS 'The attempt: the next one if is_pending, otherwise the last.';
COMMENT ON COLUMN headrace.webhook_queue.is_pending IS 'Whether the row of the next attempt is in webhook_deliveries already.';
COMMENT ON COLUMN headrace.webhook_queue.losses IS 'Attempts whose sender died or was too slow: nobody knows whether they arrived.';
COMMENT ON COLUMN headrace.webhook_queue.aggregate IS 'Type and id of what the event is about, at an endpoint that wants order; null elsewhere.';
COMMENT ON COLUMN headrace.webhook_queue.leased_until IS 'While a sender has it: when it may be taken over. The fence of what the sender writes, too.';

-- How an endpoint fares, apart from it: written with every failure, which must not touch its version.
CREATE TABLE headrace.webhook_health (
  endpoint_id        varchar(64) PRIMARY KEY,
  failures           integer NOT NULL DEFAULT 0
                     CONSTRAINT ck_webhook_health_failures CHECK (failures >= 0),
  blocked_until      timestamptz,
  last_failure_at    timestamptz,
  last_error         text,
  CONSTRAINT fk_webhook_health_endpoints_endpoint_id
    FOREIGN KEY (endpoint_id) REFERENCES headrace.webhook_endpoints (id) ON DELETE CASCADE
) WITH (fillfactor = 80);
COMMENT ON TABLE headrace.webhook_health IS 'How endpoints fare: failures in a row, and until when nothing is sent there.';
COMMENT ON COLUMN headrace.webhook_health.failures IS 'In a row; 0 after a success.';
COMMENT ON COLUMN headrace.webhook_health.blocked_until IS 'The breaker is open, or the endpoint asked for a pause.';

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.webhook_queue, headrace.webhook_health TO headrace_app;

-- Other people's servers that want to know, and every attempt to tell them.

CREATE TABLE headrace.webhook_endpoints (
  id                          varchar(64) PRIMARY KEY,
  user_id                     varchar(64) NOT NULL,
  name                        varchar(64) NOT NULL,
  url                         text NOT NULL,
  status                      varchar(16) NOT NULL
                              CONSTRAINT ck_webhook_endpoints_status CHECK (status IN ('ACTIVE', 'PAUSED', 'DISABLED')),
  secret_ciphertext           text NOT NULL,
  secret_hint                 varchar(16),
  secret_previous_ciphertext  text,
  secret_rotated_at           timestamptz,
  subscribed_events           jsonb NOT NULL DEFAULT '[]'::jsonb
                              CONSTRAINT ck_webhook_endpoints_subscribed_events CHECK (
                                jsonb_typeof(subscribed_events) = 'array'
                              ),
  timeout_ms                  integer NOT NULL DEFAULT 5000
                              CONSTRAINT ck_webhook_endpoints_timeout_ms CHECK (timeout_ms BETWEEN 1000 AND 30000),
  max_retries                 integer NOT NULL DEFAULT 6
                              CONSTRAINT ck_webhook_endpoints_max_retries CHECK (max_retries BETWEEN 0 AND 10),
  allow_ips                   jsonb
                              CONSTRAINT ck_webhook_endpoints_allow_ips CHECK (jsonb_typeof(allow_ips) = 'array'),
  failing_since               timestamptz,
  version                     integer NOT NULL DEFAULT 0,
  created_at                  timestamptz NOT NULL DEFAULT now(),
  updated_at                  timestamptz NOT NULL DEFAULT now(),
  deleted_at                  timestamptz,
  CONSTRAINT fk_webhook_endpoints_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id)
);
CREATE UNIQUE INDEX uk_webhook_endpoints_user_url_active ON headrace.webhook_endpoints (user_id, url)
  WHERE deleted_at IS NULL;
CREATE INDEX idx_webhook_endpoints_user_status ON headrace.webhook_endpoints (user_id, status);

COMMENT ON TABLE headrace.webhook_endpoints IS 'Where a user wants events sent.';
COMMENT ON COLUMN headrace.webhook_endpoints.secret_hint IS 'The last characters, so that a person can tell secrets apart.';
COMMENT ON COLUMN headrace.webhook_endpoints.secret_previous_ciphertext IS 'Signs beside the new one for a while after a rotation.';
COMMENT ON COLUMN headrace.webhook_endpoints.subscribed_events IS '[event type]';
COMMENT ON COLUMN headrace.webhook_endpoints.allow_ips IS '[address or network]: narrows where the URL may lead. Null: any public address.';
COMMENT ON COLUMN headrace.webhook_endpoints.failing_since IS 'The first of the failures in a row; null after a success.';
COMMENT ON COLUMN headrace.webhook_endpoints.version IS 'Optimistic lock, and the ETag.';


CREATE SEQUENCE headrace.webhook_deliveries_id_seq;

CREATE TABLE headrace.webhook_deliveries (
  id                 bigint NOT NULL DEFAULT nextval('headrace.webhook_deliveries_id_seq'),
  period             date NOT NULL,
  delivery_id        varchar(64) NOT NULL,
  endpoint_id        varchar(64) NOT NULL,
  event_id           varchar(64) NOT NULL,
  event_type         varchar(128) NOT NULL,
  attempt            integer NOT NULL
                     CONSTRAINT ck_webhook_deliveries_attempt CHECK (attempt >= 1),
  request_headers    jsonb,
  request_body       jsonb,
  response_status    integer,
  response_body      text,
  duration_ms        integer
                     CONSTRAINT ck_webhook_deliveries_duration_ms CHECK (duration_ms >= 0),
  status             varchar(16) NOT NULL
                     CONSTRAINT ck_webhook_deliveries_status CHECK (
                       status IN ('PENDING', 'SUCCESS', 'FAILED', 'RETRYING', 'DEAD')
                     ),
  next_retry_at      timestamptz DEFAULT now(),  -- a new delivery is due at once; null would hide it from the sender
  delivered_at       timestamptz,
  created_at         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (id, period),
  CONSTRAINT fk_webhook_deliveries_endpoints_endpoint_id
    FOREIGN KEY (endpoint_id) REFERENCES headrace.webhook_endpoints (id) ON DELETE CASCADE,
  CONSTRAINT uk_webhook_delivery_id UNIQUE (delivery_id, period),
  CONSTRAINT uk_webhook_endpoint_event_attempt UNIQUE (endpoint_id, event_id, attempt, period),
  -- As in the ledger: both unique keys decide the period themselves, so it takes nothing from them.
  CONSTRAINT ck_webhook_deliveries_event_period CHECK (period = headrace.typeid_month(event_id)),
  CONSTRAINT ck_webhook_deliveries_delivery_period CHECK (period = headrace.typeid_month(delivery_id))
) PARTITION BY RANGE (period);
ALTER SEQUENCE headrace.webhook_deliveries_id_seq OWNED BY headrace.webhook_deliveries.id;

CREATE INDEX idx_webhook_deliveries_endpoint_status_next_retry
  ON headrace.webhook_deliveries (endpoint_id, status, next_retry_at);
CREATE INDEX idx_webhook_deliveries_event_id ON headrace.webhook_deliveries (event_id);
-- What is due over all endpoints, oldest first: the sender's question.
CREATE INDEX idx_webhook_deliveries_due ON headrace.webhook_deliveries (next_retry_at)
  WHERE status IN ('PENDING', 'FAILED', 'RETRYING');

COMMENT ON TABLE headrace.webhook_deliveries IS 'Each attempt to send an event to an endpoint: monthly partitions by the event''s month.';
COMMENT ON COLUMN headrace.webhook_deliveries.period IS 'First day of the month (UTC) inside event_id and delivery_id.';
COMMENT ON COLUMN headrace.webhook_deliveries.event_id IS 'The event. No foreign key: deliveries are kept longer than published events, and would pin them.';
COMMENT ON COLUMN headrace.webhook_deliveries.delivery_id IS 'TypeID made with its event''s instant, also for an attempt weeks later.';
COMMENT ON COLUMN headrace.webhook_deliveries.id IS 'A number from one sequence; what names a delivery is delivery_id.';

CREATE TABLE headrace.webhook_deliveries_default PARTITION OF headrace.webhook_deliveries DEFAULT;
SELECT headrace.adopt_partition('headrace.webhook_deliveries', 'headrace.webhook_deliveries_default');
SELECT headrace.create_month_partitions(
  'headrace.webhook_deliveries', (now() AT TIME ZONE 'UTC' - interval '1 month')::date, (now() AT TIME ZONE 'UTC' + interval '3 months')::date
);

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.webhook_endpoints, headrace.webhook_deliveries TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.webhook_deliveries_id_seq TO headrace_app;

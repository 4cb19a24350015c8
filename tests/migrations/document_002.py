"""Document 002's DDL: the fifteen tables of §5 and the two of §13.2; see `documents`."""

WATERMARK_REMOVAL_002 = """
-- 1) users
CREATE TABLE users (
  id                 varchar(64) PRIMARY KEY,
  wechat_openid      varchar(128) UNIQUE,
  mobile             varchar(32),
  status             varchar(16) NOT NULL DEFAULT 'ACTIVE'
                     CHECK (status IN ('ACTIVE', 'SUSPENDED', 'DELETED')),
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  deleted_at         timestamptz,
  last_login_at      timestamptz
);
CREATE INDEX idx_users_status_created_at ON users(status, created_at DESC);

-- 2) assets
CREATE TABLE assets (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  media_type         varchar(16) NOT NULL
                     CHECK (media_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT')),
  origin_name        varchar(255) NOT NULL,
  mime_type          varchar(128) NOT NULL,
  size_bytes         bigint NOT NULL CHECK (size_bytes > 0),
  sha256             char(64),
  storage_bucket     varchar(63) NOT NULL DEFAULT 'media',
  storage_key        text NOT NULL,
  status             varchar(16) NOT NULL DEFAULT 'UPLOADED'
                     CHECK (status IN ('UPLOADED', 'DELETED')),
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  deleted_at         timestamptz,
  CONSTRAINT fk_assets_users_user_id FOREIGN KEY (user_id) REFERENCES users(id),
  CONSTRAINT uk_assets_storage_key UNIQUE (storage_key)
);
CREATE INDEX idx_assets_user_created_at ON assets(user_id, created_at DESC);
CREATE INDEX idx_assets_sha256 ON assets(sha256);

-- 3) tasks
CREATE TABLE tasks (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  input_asset_id     varchar(64) NOT NULL,
  task_type          varchar(16) NOT NULL CHECK (task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT')),
  quality_level      varchar(16) NOT NULL CHECK (quality_level IN ('STANDARD', 'HIGH')),
  mode               varchar(16) NOT NULL DEFAULT 'AUTO' CHECK (mode IN ('AUTO', 'MANUAL')),
  output_format      varchar(16) NOT NULL,
  status             varchar(24) NOT NULL CHECK (
                     status IN ('UPLOADED', 'QUEUED', 'PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING',
                                'SUCCEEDED', 'FAILED', 'CANCELED')
                     ),
  current_step       varchar(24),
  progress           smallint NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 100),
  attempt            integer NOT NULL DEFAULT 0,
  eta_sec            integer CHECK (eta_sec >= 0),
  error_code         varchar(16),
  error_message      text,
  queued_at          timestamptz,
  started_at         timestamptz,
  finished_at        timestamptz,
  version            integer NOT NULL DEFAULT 0,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  deleted_at         timestamptz,
  CONSTRAINT fk_tasks_users_user_id FOREIGN KEY (user_id) REFERENCES users(id),
  CONSTRAINT fk_tasks_assets_input_asset_id FOREIGN KEY (input_asset_id) REFERENCES assets(id)
);
CREATE INDEX idx_tasks_user_status_created_at ON tasks(user_id, status, created_at DESC);
CREATE INDEX idx_tasks_status_updated_at ON tasks(status, updated_at DESC);
CREATE INDEX idx_tasks_asset_id ON tasks(input_asset_id);

-- 4) task_steps
CREATE TABLE task_steps (
  id                 bigserial PRIMARY KEY,
  task_id            varchar(64) NOT NULL,
  step_name          varchar(24) NOT NULL
                     CHECK (step_name IN ('PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING')),
  status             varchar(16) NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'SKIPPED')),
  attempt            integer NOT NULL DEFAULT 1,
  started_at         timestamptz,
  ended_at           timestamptz,
  duration_ms        integer CHECK (duration_ms >= 0),
  detail_json        jsonb,
  trace_id           varchar(64),
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_task_steps_tasks_task_id FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE,
  CONSTRAINT uk_task_steps_task_step_attempt UNIQUE (task_id, step_name, attempt)
);
CREATE INDEX idx_task_steps_task_id_created_at ON task_steps(task_id, created_at DESC);

-- 5) task_results
CREATE TABLE task_results (
  id                 bigserial PRIMARY KEY,
  task_id            varchar(64) NOT NULL,
  result_bucket      varchar(63) NOT NULL DEFAULT 'result',
  result_key         text NOT NULL,
  preview_bucket     varchar(63),
  preview_key        text,
  expire_at          timestamptz,
  metrics_json       jsonb,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_task_results_tasks_task_id FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE,
  CONSTRAINT uk_task_results_task_id UNIQUE (task_id)
);
CREATE INDEX idx_task_results_expire_at ON task_results(expire_at);

-- 6) plans
CREATE TABLE plans (
  id                 varchar(64) PRIMARY KEY,
  name               varchar(64) NOT NULL,
  price_cents        integer NOT NULL CHECK (price_cents >= 0),
  currency           char(3) NOT NULL DEFAULT 'CNY',
  monthly_quota      integer NOT NULL CHECK (monthly_quota >= 0),
  features_json      jsonb NOT NULL DEFAULT '[]'::jsonb,
  is_active          boolean NOT NULL DEFAULT true,
  sort_order         integer NOT NULL DEFAULT 0,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT uk_plans_name UNIQUE (name)
);
CREATE INDEX idx_plans_active_sort ON plans(is_active, sort_order);

-- 7) subscriptions
CREATE TABLE subscriptions (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  plan_id            varchar(64) NOT NULL,
  status             varchar(16) NOT NULL
                     CHECK (status IN ('PENDING', 'ACTIVE', 'PAST_DUE', 'CANCELED', 'EXPIRED', 'REFUNDED')),
  channel            varchar(16) NOT NULL CHECK (channel IN ('WECHAT_PAY')),
  external_order_id  varchar(128),
  started_at         timestamptz,
  effective_at       timestamptz,
  expire_at          timestamptz,
  canceled_at        timestamptz,
  auto_renew         boolean NOT NULL DEFAULT false,
  meta_json          jsonb,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_subscriptions_users_user_id FOREIGN KEY (user_id) REFERENCES users(id),
  CONSTRAINT fk_subscriptions_plans_plan_id FOREIGN KEY (plan_id) REFERENCES plans(id)
);
CREATE UNIQUE INDEX uk_subscriptions_external_order_id
  ON subscriptions(external_order_id)
  WHERE external_order_id IS NOT NULL;
CREATE INDEX idx_subscriptions_user_status ON subscriptions(user_id, status, created_at DESC);

-- 8) entitlements
CREATE TABLE entitlements (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  plan_id            varchar(64) NOT NULL,
  subscription_id    varchar(64),
  quota_total        integer NOT NULL CHECK (quota_total >= 0),
  quota_left         integer NOT NULL CHECK (quota_left >= 0),
  period_start       timestamptz NOT NULL,
  period_end         timestamptz NOT NULL,
  status             varchar(16) NOT NULL CHECK (status IN ('ACTIVE', 'EXPIRED', 'SUSPENDED')),
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_entitlements_users_user_id FOREIGN KEY (user_id) REFERENCES users(id),
  CONSTRAINT fk_entitlements_plans_plan_id FOREIGN KEY (plan_id) REFERENCES plans(id),
  CONSTRAINT fk_entitlements_subscriptions_subscription_id FOREIGN KEY (subscription_id) REFERENCES subscriptions(id),
  CONSTRAINT ck_entitlements_quota CHECK (quota_left <= quota_total)
);
CREATE INDEX idx_entitlements_user_status_period_end ON entitlements(user_id, status, period_end DESC);

-- 9) usage_ledger
CREATE TABLE usage_ledger (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  task_id            varchar(64),
  entitlement_id     varchar(64),
  consume_unit       integer NOT NULL CHECK (consume_unit > 0),
  direction          varchar(8) NOT NULL CHECK (direction IN ('DEBIT', 'CREDIT')),
  status             varchar(16) NOT NULL CHECK (status IN ('HELD', 'COMMITTED', 'RELEASED')),
  source             varchar(32) NOT NULL
                     CHECK (source IN ('TASK_CREATE', 'TASK_COMPLETE', 'TASK_CANCEL', 'TASK_FAIL', 'MANUAL_ADJUST',
                       'SUBSCRIPTION_GRANT')),
  idempotency_key    varchar(128) NOT NULL,
  remark             text,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_usage_ledger_users_user_id FOREIGN KEY (user_id) REFERENCES users(id),
  CONSTRAINT fk_usage_ledger_tasks_task_id FOREIGN KEY (task_id) REFERENCES tasks(id),
  CONSTRAINT fk_usage_ledger_entitlements_entitlement_id FOREIGN KEY (entitlement_id) REFERENCES entitlements(id),
  CONSTRAINT uk_usage_ledger_user_idempotency UNIQUE (user_id, idempotency_key)
);
CREATE INDEX idx_usage_ledger_user_created_at ON usage_ledger(user_id, created_at DESC);
CREATE INDEX idx_usage_ledger_task_id ON usage_ledger(task_id);
CREATE INDEX idx_usage_ledger_status_created_at ON usage_ledger(status, created_at DESC);

-- 10) notifications
CREATE TABLE notifications (
  id                 bigserial PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  type               varchar(32) NOT NULL
                     CHECK (type IN ('TASK_SUCCEEDED', 'TASK_FAILED', 'SUBSCRIPTION_ACTIVATED',
                       'SUBSCRIPTION_EXPIRING', 'ACCOUNT_DELETE_COMPLETED')),
  title              varchar(128) NOT NULL,
  body               text NOT NULL,
  payload_json       jsonb,
  is_read            boolean NOT NULL DEFAULT false,
  read_at            timestamptz,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_notifications_users_user_id FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE INDEX idx_notifications_user_read_created_at ON notifications(user_id, is_read, created_at DESC);

-- 11) audit_logs
CREATE TABLE audit_logs (
  id                 bigserial PRIMARY KEY,
  user_id            varchar(64),
  actor_type         varchar(16) NOT NULL CHECK (actor_type IN ('USER', 'ADMIN', 'SYSTEM')),
  actor_id           varchar(64),
  action             varchar(64) NOT NULL,
  target_type        varchar(32),
  target_id          varchar(64),
  ip                 inet,
  user_agent         text,
  trace_id           varchar(64),
  request_id         varchar(64),
  detail_json        jsonb,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_audit_logs_users_user_id FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE SET NULL
);
CREATE INDEX idx_audit_logs_actor_created_at ON audit_logs(actor_type, actor_id, created_at DESC);
CREATE INDEX idx_audit_logs_action_created_at ON audit_logs(action, created_at DESC);
CREATE INDEX idx_audit_logs_trace_id ON audit_logs(trace_id);

-- 12) idempotency_keys
CREATE TABLE idempotency_keys (
  id                 bigserial PRIMARY KEY,
  scope              varchar(64) NOT NULL,
  user_id            varchar(64),
  idempotency_key    varchar(128) NOT NULL,
  request_hash       char(64) NOT NULL,
  response_json      jsonb,
  http_status        integer,
  expires_at         timestamptz NOT NULL,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_idempotency_keys_users_user_id FOREIGN KEY (user_id) REFERENCES users(id),
  CONSTRAINT uk_idempotency_scope_user_key UNIQUE (scope, user_id, idempotency_key)
);
CREATE INDEX idx_idempotency_keys_expires_at ON idempotency_keys(expires_at);

-- 13) outbox_events
CREATE TABLE outbox_events (
  id                 bigserial PRIMARY KEY,
  event_id           varchar(64) NOT NULL,
  event_type         varchar(128) NOT NULL,
  event_version      integer NOT NULL CHECK (event_version > 0),
  aggregate_type     varchar(64) NOT NULL,
  aggregate_id       varchar(64) NOT NULL,
  trace_id           varchar(64),
  payload_json       jsonb NOT NULL,
  headers_json       jsonb,
  status             varchar(16) NOT NULL CHECK (status IN ('PENDING', 'PUBLISHED', 'FAILED', 'DEAD')),
  retry_count        integer NOT NULL DEFAULT 0,
  next_retry_at      timestamptz,
  published_at       timestamptz,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT uk_outbox_events_event_id UNIQUE (event_id)
);
CREATE INDEX idx_outbox_events_status_next_retry_at ON outbox_events(status, next_retry_at);
CREATE INDEX idx_outbox_events_aggregate ON outbox_events(aggregate_type, aggregate_id);
CREATE INDEX idx_outbox_events_event_type_created_at ON outbox_events(event_type, created_at DESC);

-- 14) webhook_endpoints
CREATE TABLE webhook_endpoints (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  name               varchar(64) NOT NULL,
  url                text NOT NULL,
  status             varchar(16) NOT NULL CHECK (status IN ('ACTIVE', 'PAUSED', 'DISABLED')),
  secret_ciphertext  text NOT NULL,
  secret_hint        varchar(16),
  subscribed_events  jsonb NOT NULL DEFAULT '[]'::jsonb,
  timeout_ms         integer NOT NULL DEFAULT 5000 CHECK (timeout_ms BETWEEN 1000 AND 30000),
  max_retries        integer NOT NULL DEFAULT 6 CHECK (max_retries BETWEEN 0 AND 10),
  allow_ips          jsonb,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  deleted_at         timestamptz,
  CONSTRAINT fk_webhook_endpoints_users_user_id FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE UNIQUE INDEX uk_webhook_endpoints_user_url_active
  ON webhook_endpoints(user_id, url)
  WHERE deleted_at IS NULL;
CREATE INDEX idx_webhook_endpoints_user_status ON webhook_endpoints(user_id, status);

-- 15) webhook_deliveries
CREATE TABLE webhook_deliveries (
  id                 bigserial PRIMARY KEY,
  delivery_id        varchar(64) NOT NULL,
  endpoint_id        varchar(64) NOT NULL,
  event_id           varchar(64) NOT NULL,
  event_type         varchar(128) NOT NULL,
  attempt            integer NOT NULL CHECK (attempt >= 1),
  request_headers    jsonb,
  request_body       jsonb,
  response_status    integer,
  response_body      text,
  duration_ms        integer CHECK (duration_ms >= 0),
  status             varchar(16) NOT NULL CHECK (status IN ('PENDING', 'SUCCESS', 'FAILED', 'RETRYING', 'DEAD')),
  next_retry_at      timestamptz,
  delivered_at       timestamptz,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_webhook_deliveries_endpoints_endpoint_id FOREIGN KEY (endpoint_id)
    REFERENCES webhook_endpoints(id) ON DELETE CASCADE,
  CONSTRAINT fk_webhook_deliveries_outbox_event_id FOREIGN KEY (event_id) REFERENCES outbox_events(event_id),
  CONSTRAINT uk_webhook_delivery_id UNIQUE (delivery_id),
  CONSTRAINT uk_webhook_endpoint_event_attempt UNIQUE (endpoint_id, event_id, attempt)
);
CREATE INDEX idx_webhook_deliveries_endpoint_status_next_retry
  ON webhook_deliveries(endpoint_id, status, next_retry_at);
CREATE INDEX idx_webhook_deliveries_event_id ON webhook_deliveries(event_id);

-- 可选扩展表：system_configs
CREATE TABLE system_configs (
  id                 bigserial PRIMARY KEY,
  config_key         varchar(128) NOT NULL,
  config_scope       varchar(32) NOT NULL DEFAULT 'GLOBAL'
                     CHECK (config_scope IN ('GLOBAL', 'TENANT', 'USER')),
  config_value       jsonb NOT NULL,
  version            integer NOT NULL DEFAULT 1,
  is_active          boolean NOT NULL DEFAULT true,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT uk_system_configs_key_scope UNIQUE (config_key, config_scope)
);
CREATE INDEX idx_system_configs_active_key
  ON system_configs(is_active, config_key);

-- 可选扩展表：tech_risk_ledger
CREATE TABLE tech_risk_ledger (
  id                 bigserial PRIMARY KEY,
  risk_id            varchar(64) NOT NULL UNIQUE,
  category           varchar(32) NOT NULL
                     CHECK (category IN ('LICENSE', 'TECHNICAL', 'COST', 'COMPLIANCE')),
  severity           varchar(16) NOT NULL
                     CHECK (severity IN ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
  status             varchar(16) NOT NULL
                     CHECK (status IN ('OPEN', 'MITIGATING', 'ACCEPTED', 'CLOSED')),
  trigger_condition  text NOT NULL,
  mitigation_plan    text NOT NULL,
  owner              varchar(64) NOT NULL,
  refs_json          jsonb,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_tech_risk_ledger_status_severity
  ON tech_risk_ledger(status, severity);
CREATE INDEX idx_tech_risk_ledger_owner
  ON tech_risk_ledger(owner);
"""

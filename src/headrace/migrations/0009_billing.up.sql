-- Money: what can be bought, what was bought, what it allows, and the ledger that explains every unit.

CREATE TABLE headrace.plans (
  id                 varchar(64) PRIMARY KEY,
  name               varchar(64) NOT NULL,
  price_cents        integer NOT NULL
                     CONSTRAINT ck_plans_price_cents CHECK (price_cents >= 0),
  currency           char(3) NOT NULL DEFAULT 'CNY',
  monthly_quota      integer NOT NULL
                     CONSTRAINT ck_plans_monthly_quota CHECK (monthly_quota >= 0),
  features_json      jsonb NOT NULL DEFAULT '[]'::jsonb,
  is_active          boolean NOT NULL DEFAULT true,
  sort_order         integer NOT NULL DEFAULT 0,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT uk_plans_name UNIQUE (name)
);
CREATE INDEX idx_plans_active_sort ON headrace.plans (is_active, sort_order);

COMMENT ON TABLE headrace.plans IS 'What can be subscribed to.';
COMMENT ON COLUMN headrace.plans.monthly_quota IS 'Units a month. An image is one; what other files cost is in features_json.';


CREATE TABLE headrace.subscriptions (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  plan_id            varchar(64) NOT NULL,
  status             varchar(16) NOT NULL
                     CONSTRAINT ck_subscriptions_status CHECK (
                       status IN ('PENDING', 'ACTIVE', 'PAST_DUE', 'CANCELED', 'EXPIRED', 'REFUNDED')
                     ),
  channel            varchar(16) NOT NULL
                     CONSTRAINT ck_subscriptions_channel CHECK (channel IN ('WECHAT_PAY')),
  external_order_id  varchar(128),
  started_at         timestamptz,
  effective_at       timestamptz,
  expire_at          timestamptz,
  canceled_at        timestamptz,
  auto_renew         boolean NOT NULL DEFAULT false,
  meta_json          jsonb,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_subscriptions_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  CONSTRAINT fk_subscriptions_plans_plan_id FOREIGN KEY (plan_id) REFERENCES headrace.plans (id)
);
CREATE UNIQUE INDEX uk_subscriptions_external_order_id ON headrace.subscriptions (external_order_id)
  WHERE external_order_id IS NOT NULL;
CREATE INDEX idx_subscriptions_user_status ON headrace.subscriptions (user_id, status, created_at DESC);

COMMENT ON TABLE headrace.subscriptions IS 'Who bought which plan. One order makes one subscription.';


CREATE TABLE headrace.entitlements (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  plan_id            varchar(64) NOT NULL,
  subscription_id    varchar(64),
  quota_total        integer NOT NULL
                     CONSTRAINT ck_entitlements_quota_total CHECK (quota_total >= 0),
  quota_left         integer NOT NULL
                     CONSTRAINT ck_entitlements_quota_left CHECK (quota_left >= 0),
  period_start       timestamptz NOT NULL,
  period_end         timestamptz NOT NULL,
  status             varchar(16) NOT NULL
                     CONSTRAINT ck_entitlements_status CHECK (status IN ('ACTIVE', 'EXPIRED', 'SUSPENDED')),
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_entitlements_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  CONSTRAINT fk_entitlements_plans_plan_id FOREIGN KEY (plan_id) REFERENCES headrace.plans (id),
  CONSTRAINT fk_entitlements_subscriptions_subscription_id
    FOREIGN KEY (subscription_id) REFERENCES headrace.subscriptions (id),
  CONSTRAINT ck_entitlements_quota CHECK (quota_left <= quota_total),
  CONSTRAINT ck_entitlements_period CHECK (period_end > period_start)
) WITH (fillfactor = 70);  -- quota_left moves with every task and is in no index
CREATE INDEX idx_entitlements_user_status_period_end ON headrace.entitlements (user_id, status, period_end DESC);
-- A payment callback that comes twice grants once.
CREATE UNIQUE INDEX uk_entitlements_subscription_period ON headrace.entitlements (subscription_id, period_start)
  WHERE subscription_id IS NOT NULL;

COMMENT ON TABLE headrace.entitlements IS 'Units that a user may use in a period. total = left + held + committed, by the ledger.';


CREATE TABLE headrace.usage_ledger (
  id                 varchar(64) NOT NULL,
  period             date NOT NULL,
  user_id            varchar(64) NOT NULL,
  task_id            varchar(64),
  entitlement_id     varchar(64),
  hold_id            varchar(64),
  consume_unit       integer NOT NULL
                     CONSTRAINT ck_usage_ledger_consume_unit CHECK (consume_unit > 0),
  direction          varchar(8) NOT NULL
                     CONSTRAINT ck_usage_ledger_direction CHECK (direction IN ('DEBIT', 'CREDIT')),
  status             varchar(16) NOT NULL
                     CONSTRAINT ck_usage_ledger_status CHECK (status IN ('HELD', 'COMMITTED', 'RELEASED')),
  source             varchar(32) NOT NULL
                     CONSTRAINT ck_usage_ledger_source CHECK (source IN (
                       'TASK_CREATE', 'TASK_COMPLETE', 'TASK_CANCEL', 'TASK_FAIL', 'MANUAL_ADJUST', 'SUBSCRIPTION_GRANT'
                     )),
  idempotency_key    varchar(128) NOT NULL,
  expires_at         timestamptz,
  remark             text,
  created_at         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (id, period),
  CONSTRAINT fk_usage_ledger_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  CONSTRAINT fk_usage_ledger_entitlements_entitlement_id
    FOREIGN KEY (entitlement_id) REFERENCES headrace.entitlements (id),
  CONSTRAINT uk_usage_ledger_user_idempotency UNIQUE (user_id, idempotency_key, period),
  -- The unique keys must hold the partition column; these make it follow from the rest of each key, so that they are
  -- as unique as without it.
  CONSTRAINT ck_usage_ledger_period CHECK (period = headrace.typeid_month(id)),
  CONSTRAINT ck_usage_ledger_idempotency_key CHECK (
    starts_with(idempotency_key, (extract(year FROM period) * 100 + extract(month FROM period))::integer::text || ':')
  ),
  CONSTRAINT ck_usage_ledger_hold_period CHECK (period = headrace.typeid_month(hold_id)),
  CONSTRAINT ck_usage_ledger_hold CHECK (
    CASE status WHEN 'HELD'     THEN hold_id IS NULL
                WHEN 'RELEASED' THEN hold_id IS NOT NULL AND expires_at IS NULL
                ELSE expires_at IS NULL END
  )
) PARTITION BY RANGE (period);
-- A hold is committed at most once and released at most once, whoever tries.
CREATE UNIQUE INDEX uk_usage_ledger_hold_status ON headrace.usage_ledger (hold_id, status, period)
  WHERE hold_id IS NOT NULL;
CREATE INDEX idx_usage_ledger_user_created_at ON headrace.usage_ledger (user_id, created_at DESC);
CREATE INDEX idx_usage_ledger_task_id ON headrace.usage_ledger (task_id);
CREATE INDEX idx_usage_ledger_status_created_at ON headrace.usage_ledger (status, created_at DESC);
CREATE INDEX idx_usage_ledger_entitlement_id ON headrace.usage_ledger (entitlement_id);
CREATE INDEX idx_usage_ledger_expires_at ON headrace.usage_ledger (expires_at) WHERE expires_at IS NOT NULL;

COMMENT ON TABLE headrace.usage_ledger IS 'Every unit held, used and given back: monthly partitions by period, never updated, deleted or truncated.';
COMMENT ON COLUMN headrace.usage_ledger.id IS 'TypeID whose instant is the accounting instant: a settlement takes its hold''s.';
COMMENT ON COLUMN headrace.usage_ledger.task_id IS 'The task it is about. No foreign key: the ledger is kept longer than tasks, and would pin them.';
COMMENT ON COLUMN headrace.usage_ledger.period IS 'First day of the accounting month (UTC), the one inside the id.';
COMMENT ON COLUMN headrace.usage_ledger.hold_id IS 'The HELD row that this one settles, of the same period.';
COMMENT ON COLUMN headrace.usage_ledger.idempotency_key IS 'YYYYMM of the period, a colon, then what makes it one of a kind.';
COMMENT ON COLUMN headrace.usage_ledger.expires_at IS 'When a hold that nobody settles is released by itself.';


CREATE TABLE headrace.usage_ledger_default PARTITION OF headrace.usage_ledger DEFAULT;
SELECT headrace.adopt_partition('headrace.usage_ledger', 'headrace.usage_ledger_default');
SELECT headrace.create_month_partitions(
  'headrace.usage_ledger', (now() AT TIME ZONE 'UTC' - interval '1 month')::date, (now() AT TIME ZONE 'UTC' + interval '3 months')::date
);

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.plans, headrace.subscriptions, headrace.entitlements TO headrace_app;
GRANT SELECT, INSERT ON headrace.usage_ledger TO headrace_app;

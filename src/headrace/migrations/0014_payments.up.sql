-- Buying: orders that are paid for with WeChat Pay, what they bought, and a plan that costs nothing.

ALTER TABLE headrace.plans ADD COLUMN version integer NOT NULL DEFAULT 1;
COMMENT ON COLUMN headrace.plans.version IS 'Optimistic lock, and the ETag.';

ALTER TABLE headrace.subscriptions ADD COLUMN version integer NOT NULL DEFAULT 1;
ALTER TABLE headrace.subscriptions ADD COLUMN expiring_told_for timestamptz;
COMMENT ON COLUMN headrace.subscriptions.version IS 'Optimistic lock, and the ETag.';
COMMENT ON COLUMN headrace.subscriptions.external_order_id IS 'The order that made it; payment_orders has this one and those of its renewals.';
COMMENT ON COLUMN headrace.subscriptions.effective_at IS 'Since when it has run without a gap. Periods are counted in months from here.';
COMMENT ON COLUMN headrace.subscriptions.expire_at IS 'The end of the last period that is paid for.';
COMMENT ON COLUMN headrace.subscriptions.canceled_at IS 'When its user said that it shall not go on; an ACTIVE one lasts to expire_at all the same.';
COMMENT ON COLUMN headrace.subscriptions.expiring_told_for IS 'The expire_at of which subscription.expiring has told.';

ALTER TABLE headrace.entitlements ADD COLUMN features_json jsonb;
COMMENT ON COLUMN headrace.entitlements.features_json IS 'The plan''s features when it was granted: changing a plan changes nothing that was granted.';

-- Nothing has written to subscriptions and entitlements before this migration: they are empty, and an index takes no time.
-- squawk-ignore require-concurrent-index-creation
CREATE UNIQUE INDEX uk_subscriptions_user_live ON headrace.subscriptions (user_id) WHERE status IN ('ACTIVE', 'PAST_DUE');
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX idx_subscriptions_expire_at ON headrace.subscriptions (expire_at) WHERE status IN ('ACTIVE', 'PAST_DUE');
-- squawk-ignore require-concurrent-index-creation
CREATE UNIQUE INDEX uk_entitlements_user_plan_period ON headrace.entitlements (user_id, plan_id, period_start)
  WHERE subscription_id IS NULL;
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX idx_entitlements_period_end ON headrace.entitlements (period_end) WHERE status = 'ACTIVE';


CREATE TABLE headrace.payment_orders (
  id                 varchar(32) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  plan_id            varchar(64) NOT NULL,
  subscription_id    varchar(64) NOT NULL,
  entitlement_id     varchar(64),
  kind               varchar(16) NOT NULL
                     CONSTRAINT ck_payment_orders_kind CHECK (kind IN ('PURCHASE', 'RENEWAL')),
  method             varchar(16) NOT NULL
                     CONSTRAINT ck_payment_orders_method CHECK (method IN ('NATIVE', 'JSAPI')),
  status             varchar(16) NOT NULL
                     CONSTRAINT ck_payment_orders_status CHECK (
                       status IN ('PENDING', 'PAID', 'CLOSED', 'REFUNDING', 'REFUNDED')
                     ),
  description        varchar(127) NOT NULL,
  amount_cents       integer NOT NULL
                     CONSTRAINT ck_payment_orders_amount_cents CHECK (amount_cents > 0),
  currency           varchar(3) NOT NULL,
  units              integer NOT NULL
                     CONSTRAINT ck_payment_orders_units CHECK (units >= 0),
  features_json      jsonb NOT NULL,
  code_url           varchar(512),
  prepay_id          varchar(128),
  transaction_id     varchar(64),
  refund_id          varchar(64),
  refund_reason      varchar(80),
  problem            varchar(64),
  expires_at         timestamptz NOT NULL,
  checked_at         timestamptz,
  paid_at            timestamptz,
  refunded_at        timestamptz,
  version            integer NOT NULL DEFAULT 1,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_payment_orders_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  CONSTRAINT fk_payment_orders_plans_plan_id FOREIGN KEY (plan_id) REFERENCES headrace.plans (id),
  CONSTRAINT fk_payment_orders_subscriptions_subscription_id
    FOREIGN KEY (subscription_id) REFERENCES headrace.subscriptions (id),
  CONSTRAINT fk_payment_orders_entitlements_entitlement_id
    FOREIGN KEY (entitlement_id) REFERENCES headrace.entitlements (id),
  CONSTRAINT ck_payment_orders_paid_at CHECK ((status IN ('PENDING', 'CLOSED')) = (paid_at IS NULL)),
  CONSTRAINT ck_payment_orders_refunded_at CHECK ((status = 'REFUNDED') = (refunded_at IS NOT NULL)),
  CONSTRAINT ck_payment_orders_refund_id CHECK (status <> 'REFUNDING' OR refund_id IS NOT NULL)
);
-- Money that came once is counted once, and what it bought was bought once.
CREATE UNIQUE INDEX uk_payment_orders_transaction_id ON headrace.payment_orders (transaction_id)
  WHERE transaction_id IS NOT NULL;
CREATE UNIQUE INDEX uk_payment_orders_entitlement_id ON headrace.payment_orders (entitlement_id)
  WHERE entitlement_id IS NOT NULL;
-- A subscription is paid for by one order at a time.
CREATE UNIQUE INDEX uk_payment_orders_subscription_pending ON headrace.payment_orders (subscription_id)
  WHERE status = 'PENDING';
CREATE INDEX idx_payment_orders_user_created_at ON headrace.payment_orders (user_id, created_at DESC, id DESC);
CREATE INDEX idx_payment_orders_created_at ON headrace.payment_orders (created_at DESC, id DESC);
CREATE INDEX idx_payment_orders_subscription_id ON headrace.payment_orders (subscription_id);
CREATE INDEX idx_payment_orders_open ON headrace.payment_orders (checked_at) WHERE status IN ('PENDING', 'REFUNDING');

COMMENT ON TABLE headrace.payment_orders IS 'What somebody was asked to pay for one period of a plan, and what became of it.';
COMMENT ON COLUMN headrace.payment_orders.id IS 'The order number at WeChat Pay, too (out_trade_no).';
COMMENT ON COLUMN headrace.payment_orders.entitlement_id IS 'What it bought; null while unpaid, and where the money came too late to buy anything.';
COMMENT ON COLUMN headrace.payment_orders.units IS 'What the plan gave when it was ordered: changing the plan changes no order.';
COMMENT ON COLUMN headrace.payment_orders.code_url IS 'What the QR code of a NATIVE order says.';
COMMENT ON COLUMN headrace.payment_orders.prepay_id IS 'What a JSAPI order is paid with, in the mini-program.';
COMMENT ON COLUMN headrace.payment_orders.transaction_id IS 'WeChat Pay''s own number of the payment.';
COMMENT ON COLUMN headrace.payment_orders.refund_id IS 'Our number of its refund (out_refund_no).';
COMMENT ON COLUMN headrace.payment_orders.problem IS 'What an operator has to look at: the code of what was wrong with the last message about it.';
COMMENT ON COLUMN headrace.payment_orders.checked_at IS 'When WeChat Pay was asked last what became of it.';
COMMENT ON COLUMN headrace.payment_orders.version IS 'Optimistic lock, and the ETag.';

GRANT SELECT, INSERT, UPDATE ON headrace.payment_orders TO headrace_app;


-- Everybody has it, month by month, without subscribing. The id is the one in headrace.billing.plans.model.
INSERT INTO headrace.plans (id, name, price_cents, monthly_quota, sort_order)
VALUES ('pln_00000000000000000000000000', 'Free', 0, 20, -1);

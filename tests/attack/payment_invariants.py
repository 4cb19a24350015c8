"""What must hold of plans, subscriptions, orders and what they granted."""

from tests.attack.model import Invariant

PAYMENTS = [
    Invariant(
        "an order that was paid bought what was ordered, once, or says why it could not",
        ("payment_orders", "entitlements"),
        """
        SELECT o.id, o.status, o.problem
        FROM headrace.payment_orders AS o
        LEFT JOIN headrace.entitlements AS e
          ON e.id = o.entitlement_id AND e.subscription_id = o.subscription_id AND e.user_id = o.user_id
        WHERE o.status IN ('PAID', 'REFUNDING') AND o.problem IS NULL AND e.id IS NULL
           OR o.status IN ('PENDING', 'CLOSED') AND o.entitlement_id IS NOT NULL
        """,
    ),
    Invariant(
        "what was given back cannot be used",
        ("payment_orders", "entitlements"),
        """
        SELECT o.id FROM headrace.payment_orders AS o
        JOIN headrace.entitlements AS e ON e.id = o.entitlement_id
        WHERE o.status = 'REFUNDED' AND e.status <> 'SUSPENDED'
        """,
    ),
    Invariant(
        "a subscription that lives was paid for, and has an end",
        ("subscriptions", "payment_orders"),
        """
        SELECT s.id, s.status, s.expire_at FROM headrace.subscriptions AS s
        WHERE s.status IN ('ACTIVE', 'PAST_DUE') AND (
          s.effective_at IS NULL OR s.expire_at IS NULL OR NOT EXISTS (
            SELECT FROM headrace.payment_orders AS o
            WHERE o.subscription_id = s.id AND o.status IN ('PAID', 'REFUNDING', 'REFUNDED')
          )
        )
        """,
    ),
    Invariant(
        "units that were granted stand in the ledger once",
        ("entitlements", "usage_ledger"),
        """
        SELECT e.id, count(l.id) FROM headrace.entitlements AS e
        LEFT JOIN headrace.usage_ledger AS l ON l.entitlement_id = e.id AND l.source = 'SUBSCRIPTION_GRANT'
        WHERE e.quota_total > 0
        GROUP BY e.id HAVING count(l.id) <> 1
        """,
    ),
]

_SUBSCRIPTION = """
INSERT INTO subscriptions (id, user_id, plan_id, status, channel) SELECT 'sub_1', id, 'pln', 'ACTIVE', 'WECHAT_PAY'
FROM users LIMIT 1;
"""
_ENTITLEMENT = """
INSERT INTO entitlements (id, user_id, plan_id, quota_total, quota_left, period_start, period_end, status)
SELECT 'ent_1', id, 'pln', 5, 5, now(), now() + interval '1 month', 'ACTIVE' FROM users LIMIT 1;
"""
_ORDER = """
INSERT INTO payment_orders (id, user_id, plan_id, subscription_id, kind, method, status, description, amount_cents,
                            currency, units, features_json, expires_at, paid_at, refunded_at, entitlement_id)
SELECT 'ord_1', id, 'pln', 'sub_1', 'PURCHASE', 'NATIVE', {status}, '', 1, 'CNY', 5, '[]', now(), now(), {refunded},
       {entitlement}
FROM users LIMIT 1;
"""
DAMAGE = {
    "an order that was paid": _ORDER.format(status="'PAID'", refunded="NULL", entitlement="NULL"),
    "what was given back": _ENTITLEMENT + _ORDER.format(status="'REFUNDED'", refunded="now()", entitlement="'ent_1'"),
    "a subscription that lives": _SUBSCRIPTION,
    "units that were granted": _ENTITLEMENT,
}

"""Granting units for a period: an entitlement and its ledger entry, in one transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from headrace import ids
from headrace.billing.model import Entitlement
from headrace.billing.refunded_tasks import order_cancellation
from headrace.billing.store.entitlements import COLUMNS, entitlement_of
from headrace.database import Row, Tx

# A concurrent grant of the same period waits at the unique index, and then finds this row.
INSERT_ENTITLEMENT = f"""
INSERT INTO headrace.entitlements
  (id, user_id, plan_id, subscription_id, quota_total, quota_left, period_start, period_end, status, features_json)
SELECT $1::varchar, $2::varchar, id, $4::varchar, $5::integer, $5, $6::timestamptz, $7::timestamptz, 'ACTIVE',
       coalesce($8::jsonb, features_json)
FROM headrace.plans WHERE id = $3
ON CONFLICT DO NOTHING
RETURNING {COLUMNS}
"""
# The key of an entitlement without a subscription is its plan. A refunded one may be granted again.
FIND_GRANTED = f"""
SELECT {COLUMNS} FROM headrace.entitlements
WHERE user_id = $1 AND plan_id = $2 AND subscription_id IS NOT DISTINCT FROM $3 AND period_start = $4
  AND (subscription_id IS NULL OR status <> 'SUSPENDED')
"""
INSERT_CREDIT = """
INSERT INTO headrace.usage_ledger
  (id, period, user_id, entitlement_id, consume_unit, direction, status, source, idempotency_key, remark)
SELECT id, month, user_id, entitlement_id, units, 'CREDIT', 'COMMITTED', 'SUBSCRIPTION_GRANT',
       to_char(month, 'YYYYMM') || ':grant:' || entitlement_id, $5
FROM unnest($1::varchar[], $2::varchar[], $3::varchar[], $4::integer[])
  AS given (id, user_id, entitlement_id, units)
CROSS JOIN LATERAL headrace.typeid_month(id) AS month
"""


async def grant(
    tx: Tx,
    *,
    user_id: str,
    plan_id: str,
    subscription_id: str | None,
    units: int,
    period_start: datetime,
    period_end: datetime,
    features: Any = None,
    remark: str | None = None,
) -> Entitlement:
    """Grant a user units for a period. Idempotent by subscription (without one: by user and plan) and start: a repeated
    call returns the first entitlement. ``features`` are the plan's own by default."""
    entitlement_id = ids.new("ent")
    row = await tx.fetchrow(
        INSERT_ENTITLEMENT,
        entitlement_id,
        user_id,
        plan_id,
        subscription_id,
        units,
        period_start,
        period_end,
        features,
    )
    if row is None:
        found = await tx.fetchrow(FIND_GRANTED, user_id, plan_id, subscription_id, period_start)
        assert found is not None, "the insert met this row"
        return entitlement_of(found)
    if units > 0:  # the ledger has no entries of zero units
        await tx.execute(INSERT_CREDIT, [ids.new("led")], [user_id], [entitlement_id], [units], remark)
    return entitlement_of(row)


# Users without the plan's entitlement of this month. Locked against changes of their status, so that an account under
# deletion gets none.
LACKING = """
SELECT u.id, p.monthly_quota, p.features_json
FROM headrace.plans AS p
CROSS JOIN headrace.users AS u
WHERE p.id = $1 AND p.is_active AND u.status <> 'DELETED' AND u.id <> $2
  AND NOT EXISTS (
    SELECT FROM headrace.entitlements AS e
    WHERE e.user_id = u.id AND e.plan_id = p.id AND e.subscription_id IS NULL AND e.period_start = $3
  )
ORDER BY u.id LIMIT $4
FOR SHARE OF u SKIP LOCKED
"""
INSERT_MANY = """
INSERT INTO headrace.entitlements
  (id, user_id, plan_id, quota_total, quota_left, period_start, period_end, status, features_json)
SELECT id, user_id, $3, $4, $4, $5, $6, 'ACTIVE', $7
FROM unnest($1::varchar[], $2::varchar[]) AS given (id, user_id)
ON CONFLICT DO NOTHING
RETURNING id, user_id
"""


async def grant_to_all(
    tx: Tx, *, plan_id: str, period_start: datetime, period_end: datetime, remark: str, limit: int
) -> int:
    """Grant a plan's units for a period to all users without them, in batches; returns the number granted."""
    lacking = await tx.fetch(LACKING, plan_id, ids.SYSTEM_USER, period_start, limit)
    if not lacking:
        return 0
    units, features = lacking[0]["monthly_quota"], lacking[0]["features_json"]
    made = await tx.fetch(
        INSERT_MANY,
        [ids.new("ent") for _ in lacking],
        [row["id"] for row in lacking],
        plan_id,
        units,
        period_start,
        period_end,
        features,
    )
    if units > 0:
        await _credit(tx, made, units, remark)
    return len(made)


async def _credit(tx: Tx, made: Sequence[Row], units: int, remark: str) -> None:
    new_ids = [ids.new("led") for _ in made]
    users, entitlements = [row["user_id"] for row in made], [row["id"] for row in made]
    await tx.execute(INSERT_CREDIT, new_ids, users, entitlements, [units] * len(made), remark)


SUSPEND = "UPDATE headrace.entitlements SET status = 'SUSPENDED' WHERE id = $1 AND status IN ('ACTIVE', 'EXPIRED')"


async def suspend_entitlement(tx: Tx, entitlement_id: str) -> bool:
    """Revoke its remaining units. Waiting tasks that hold some of them are canceled soon; running ones finish and are
    charged to it."""
    suspended = await tx.count(SUSPEND, entitlement_id) == 1
    if suspended:
        await order_cancellation(tx, entitlement_id)
    return suspended


EXPIRE = """
UPDATE headrace.entitlements SET status = 'EXPIRED' WHERE id IN (
  SELECT id FROM headrace.entitlements
  WHERE status = 'ACTIVE' AND period_end <= coalesce($1, now())
  ORDER BY period_end LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
)
"""


async def expire_entitlements(tx: Tx, *, now: datetime | None = None, limit: int) -> int:
    """Mark entitlements with past periods EXPIRED. Readers also check the period, so the exact time is irrelevant."""
    return await tx.count(EXPIRE, now, limit)

"""SQL for payment_orders. Orders change under their payer's lock (``subscriptions.store.lock_payer``)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from headrace.billing.payments.model import Order, OrderKind, OrderStatus, PayMethod
from headrace.database import Row, Tx
from headrace.sql import Mark, Where

COLUMNS = """id, user_id, plan_id, subscription_id, entitlement_id, kind, method, status, description, amount_cents,
  currency, units, features_json, code_url, prepay_id, transaction_id, refund_id, refund_reason, problem, expires_at,
  checked_at, paid_at, refunded_at, version, created_at, updated_at"""


def order_of(row: Row) -> Order:
    fields = {name: row[name] for name in Order.__dataclass_fields__}
    kinds = {"kind": OrderKind(row["kind"]), "method": PayMethod(row["method"]), "status": OrderStatus(row["status"])}
    return Order(**fields | kinds)


def _found(row: Row | None) -> Order | None:
    return None if row is None else order_of(row)


INSERT = f"""
INSERT INTO headrace.payment_orders
  (id, user_id, plan_id, subscription_id, kind, method, status, description, amount_cents, currency, units,
   features_json, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, 'PENDING', $7, $8, $9, $10, $11, coalesce($13, now()) + $12)
RETURNING {COLUMNS}
"""


async def insert_order(
    tx: Tx,
    order_id: str,
    *,
    user_id: str,
    plan_id: str,
    subscription_id: str,
    kind: OrderKind,
    method: PayMethod,
    description: str,
    amount_cents: int,
    currency: str,
    units: int,
    features: Any,
    lifetime: timedelta,
    now: datetime | None = None,
) -> Order:
    row = await tx.fetchrow(
        INSERT,
        order_id,
        user_id,
        plan_id,
        subscription_id,
        kind,
        method,
        description,
        amount_cents,
        currency,
        units,
        features,
        lifetime,
        now,
    )
    assert row is not None
    return order_of(row)


FIND = f"SELECT {COLUMNS} FROM headrace.payment_orders WHERE id = $1"


async def find_order(tx: Tx, order_id: str) -> Order | None:
    return _found(await tx.fetchrow(FIND, order_id))


async def lock_order(tx: Tx, order_id: str) -> Order | None:
    return _found(await tx.fetchrow(f"{FIND} FOR NO KEY UPDATE", order_id))


# Locked: the way to pay is recorded without the payer's lock, and moves the version.
LOCK_PENDING = f"""
SELECT {COLUMNS} FROM headrace.payment_orders WHERE subscription_id = $1 AND status = 'PENDING' FOR NO KEY UPDATE
"""


async def lock_pending(tx: Tx, subscription_id: str) -> Order | None:
    """The unpaid order of a subscription; there is at most one."""
    return _found(await tx.fetchrow(LOCK_PENDING, subscription_id))


LOCK_WAITING = f"""
SELECT {COLUMNS} FROM headrace.payment_orders WHERE user_id = $1 AND status = 'PENDING' ORDER BY id FOR NO KEY UPDATE
"""


async def lock_waiting(tx: Tx, user_id: str) -> list[Order]:
    """All unpaid orders of a user."""
    return [order_of(row) for row in await tx.fetch(LOCK_WAITING, user_id)]


# Also for an order that was paid meanwhile: the row then shows how it was paid.
PREPARE = f"""
UPDATE headrace.payment_orders SET code_url = $2, prepay_id = $3, version = version + 1 WHERE id = $1
RETURNING {COLUMNS}
"""


async def prepare(tx: Tx, order_id: str, *, code_url: str | None, prepay_id: str | None) -> Order:
    """Record the way to pay."""
    row = await tx.fetchrow(PREPARE, order_id, code_url, prepay_id)
    assert row is not None
    return order_of(row)


PAY = f"""
UPDATE headrace.payment_orders
SET status = 'PAID', transaction_id = $3, paid_at = coalesce($4, now()), entitlement_id = $5, problem = $6,
    subscription_id = $7, checked_at = now(), version = version + 1
WHERE id = $1 AND version = $2 AND status IN ('PENDING', 'CLOSED')
RETURNING {COLUMNS}
"""


async def pay(
    tx: Tx,
    old: Order,
    *,
    transaction_id: str | None,
    paid_at: datetime | None,
    entitlement_id: str | None,
    subscription_id: str,
    problem: str | None = None,
) -> Order | None:
    """``subscription_id`` is the one that received the payment, which may differ from the ordered one."""
    return _found(
        await tx.fetchrow(PAY, old.id, old.version, transaction_id, paid_at, entitlement_id, problem, subscription_id)
    )


CLOSE = f"""
UPDATE headrace.payment_orders SET status = 'CLOSED', version = version + 1
WHERE id = $1 AND version = $2 AND status = 'PENDING'
RETURNING {COLUMNS}
"""


async def close(tx: Tx, old: Order) -> Order | None:
    return _found(await tx.fetchrow(CLOSE, old.id, old.version))


BEGIN_REFUND = f"""
UPDATE headrace.payment_orders
SET status = 'REFUNDING', refund_id = $3, refund_reason = $4, problem = NULL, version = version + 1
WHERE id = $1 AND version = $2 AND status = 'PAID'
RETURNING {COLUMNS}
"""


async def begin_refund(tx: Tx, old: Order, *, refund_id: str, reason: str) -> Order | None:
    return _found(await tx.fetchrow(BEGIN_REFUND, old.id, old.version, refund_id, reason))


FAIL_REFUND = f"""
UPDATE headrace.payment_orders SET status = 'PAID', problem = $3, version = version + 1
WHERE id = $1 AND version = $2 AND status = 'REFUNDING'
RETURNING {COLUMNS}
"""


async def fail_refund(tx: Tx, old: Order, problem: str) -> Order | None:
    return _found(await tx.fetchrow(FAIL_REFUND, old.id, old.version, problem))


# Also for an order whose payment was never reported.
REFUND = f"""
UPDATE headrace.payment_orders
SET status = 'REFUNDED', refunded_at = coalesce($3, now()), paid_at = coalesce(paid_at, $3, now()),
    transaction_id = coalesce(transaction_id, $4), refund_id = coalesce($5, refund_id), problem = NULL,
    version = version + 1
WHERE id = $1 AND version = $2 AND status IN ('PENDING', 'CLOSED', 'PAID', 'REFUNDING')
RETURNING {COLUMNS}
"""


async def refund(
    tx: Tx, old: Order, *, refunded_at: datetime | None, transaction_id: str | None, refund_id: str | None
) -> Order | None:
    return _found(await tx.fetchrow(REFUND, old.id, old.version, refunded_at, transaction_id, refund_id))


NOTE_PROBLEM = """
UPDATE headrace.payment_orders SET problem = $2, version = version + 1 WHERE id = $1 AND problem IS DISTINCT FROM $2
"""


async def note_problem(tx: Tx, order_id: str, problem: str) -> bool:
    """Record a problem for an operator; False if it was recorded before."""
    return await tx.count(NOTE_PROBLEM, order_id, problem) == 1


RESOLVE = f"""
UPDATE headrace.payment_orders SET problem = NULL, version = version + 1 WHERE id = $1 AND version = $2
RETURNING {COLUMNS}
"""


async def resolve(tx: Tx, old: Order) -> Order | None:
    return _found(await tx.fetchrow(RESOLVE, old.id, old.version))


COUNT_PROBLEMS = """
SELECT problem, count(*) FROM headrace.payment_orders WHERE problem IS NOT NULL GROUP BY problem ORDER BY problem
"""


async def count_problems(tx: Tx) -> dict[str, int]:
    """Number of orders with problems, by problem."""
    return {row["problem"]: row["count"] for row in await tx.fetch(COUNT_PROBLEMS)}


# checked_at moves before the query, so that two processes do not query the same order. An order closed here may have
# been paid nevertheless: it is queried after its end, and again after twice that time, for a week. One query is not
# enough, because the process may be killed.
CLAIM_UNCHECKED = f"""
UPDATE headrace.payment_orders SET checked_at = coalesce($1, now()) WHERE id IN (
  SELECT id FROM headrace.payment_orders
  WHERE (status IN ('PENDING', 'REFUNDING')
         AND coalesce(checked_at, created_at) <= coalesce($1, now()) - $2::interval)
     OR (status = 'CLOSED' AND expires_at > coalesce($1, now()) - interval '7 days'
         AND expires_at <= coalesce($1, now()) - $2::interval
         AND coalesce(checked_at, created_at) < expires_at + (coalesce($1, now()) - expires_at) / 2)
  ORDER BY checked_at NULLS FIRST LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING {COLUMNS}
"""


async def claim_unchecked(tx: Tx, *, older_than: timedelta, limit: int, now: datetime | None = None) -> Sequence[Order]:
    """Claim open orders that were not queried for a while, and early closed ones after their end."""
    return [order_of(row) for row in await tx.fetch(CLAIM_UNCHECKED, now, older_than, limit)]


SELECT_ORDERS = f"SELECT {COLUMNS} FROM headrace.payment_orders"


async def list_orders(
    tx: Tx,
    *,
    user_id: str | None,
    status: OrderStatus | None = None,
    has_problem: bool = False,
    older_than: Mark | None = None,
    limit: int,
) -> list[Order]:
    """Newest first; ``has_problem`` selects only orders with a problem."""
    where = Where().eq("user_id", user_id).eq("status", status).older_than(("created_at", "id"), older_than)
    where = where.is_null("problem", False if has_problem else None)
    rows = await tx.fetch(
        f"{SELECT_ORDERS} {where.sql} ORDER BY created_at DESC, id DESC LIMIT ${where.next}", *where.args, limit
    )
    return [order_of(row) for row in rows]


OPENID = "SELECT wechat_openid FROM headrace.users WHERE id = $1"


async def find_openid(tx: Tx, user_id: str) -> str | None:
    """The user's WeChat openid."""
    openid: str | None = await tx.fetchval(OPENID, user_id)
    return openid


PERIOD = "SELECT period_start, period_end FROM headrace.entitlements WHERE id = $1"


async def find_period(tx: Tx, entitlement_id: str) -> tuple[datetime, datetime] | None:
    row = await tx.fetchrow(PERIOD, entitlement_id)
    return None if row is None else (row["period_start"], row["period_end"])


FORGET = """
UPDATE headrace.payment_orders SET code_url = NULL, prepay_id = NULL, refund_reason = NULL, version = version + 1
WHERE user_id = $1 AND (code_url IS NOT NULL OR prepay_id IS NOT NULL OR refund_reason IS NOT NULL)
"""


async def forget(tx: Tx, user_id: str) -> int:
    """Remove free text and payment references of a deleted user's orders; ids, sums and times stay."""
    return await tx.count(FORGET, user_id)

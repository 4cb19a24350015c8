"""SQL for subscriptions. Changes of a user's purchases hold that user's lock (``lock_payer``), so that orders and
subscriptions need no locking order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.billing.subscriptions.model import Subscription, SubscriptionStatus
from headrace.database import Row, Tx
from headrace.sql import Mark, Where

COLUMNS = """id, user_id, plan_id, status, channel, external_order_id, started_at, effective_at, expire_at, canceled_at,
  auto_renew, version, created_at, updated_at"""


def subscription_of(row: Row) -> Subscription:
    fields = {name: row[name] for name in Subscription.__dataclass_fields__}
    return Subscription(**fields | {"status": SubscriptionStatus(row["status"])})


def _found(row: Row | None) -> Subscription | None:
    return None if row is None else subscription_of(row)


LOCK_PAYER = "SELECT pg_advisory_xact_lock(hashtextextended('headrace.billing:' || $1, 0))"


async def lock_payer(tx: Tx, user_id: str) -> None:
    """Serialize changes of this user's purchases until this transaction ends."""
    await tx.execute(LOCK_PAYER, user_id)


CLOCK = "SELECT coalesce($1::timestamptz, now())"


async def clock(tx: Tx, now: datetime | None = None) -> datetime:
    """The database's time, because months are computed in Python."""
    at: datetime = await tx.fetchval(CLOCK, now)
    return at


INSERT = f"""
INSERT INTO headrace.subscriptions (id, user_id, plan_id, status, channel, external_order_id, auto_renew)
VALUES ($1, $2, $3, 'PENDING', 'WECHAT_PAY', $4, $5)
RETURNING {COLUMNS}
"""


async def insert_pending(
    tx: Tx, subscription_id: str, *, user_id: str, plan_id: str, order_id: str, auto_renew: bool
) -> Subscription:
    row = await tx.fetchrow(INSERT, subscription_id, user_id, plan_id, order_id, auto_renew)
    assert row is not None
    return subscription_of(row)


FIND = f"SELECT {COLUMNS} FROM headrace.subscriptions WHERE id = $1"


async def find_subscription(tx: Tx, subscription_id: str) -> Subscription | None:
    return _found(await tx.fetchrow(FIND, subscription_id))


async def lock_subscription(tx: Tx, subscription_id: str) -> Subscription | None:
    return _found(await tx.fetchrow(f"{FIND} FOR NO KEY UPDATE", subscription_id))


FIND_LIVE = f"""
SELECT {COLUMNS} FROM headrace.subscriptions WHERE user_id = $1 AND status IN ('ACTIVE', 'PAST_DUE')
FOR NO KEY UPDATE
"""


async def lock_live(tx: Tx, user_id: str) -> Subscription | None:
    """The user's live subscription."""
    return _found(await tx.fetchrow(FIND_LIVE, user_id))


ACTIVATE = f"""
UPDATE headrace.subscriptions
SET status = 'ACTIVE', started_at = coalesce(started_at, $3), effective_at = $4, expire_at = $5, canceled_at = NULL,
    version = version + 1
WHERE id = $1 AND version = $2 AND status IN ('PENDING', 'ACTIVE', 'PAST_DUE', 'CANCELED', 'EXPIRED')
RETURNING {COLUMNS}
"""


async def activate(
    tx: Tx, old: Subscription, *, started_at: datetime, effective_at: datetime, expire_at: datetime
) -> Subscription | None:
    return _found(await tx.fetchrow(ACTIVATE, old.id, old.version, started_at, effective_at, expire_at))


END = f"""
UPDATE headrace.subscriptions
SET status = $3::varchar, auto_renew = false, expire_at = coalesce($4, expire_at), version = version + 1,
    canceled_at = CASE WHEN $3::varchar = 'CANCELED' THEN coalesce(canceled_at, now()) ELSE canceled_at END
WHERE id = $1 AND version = $2 AND status = $5
RETURNING {COLUMNS}
"""


async def end(
    tx: Tx, old: Subscription, status: SubscriptionStatus, *, expire_at: datetime | None = None
) -> Subscription | None:
    """Move to CANCELED, EXPIRED or REFUNDED from the state of ``old``."""
    return _found(await tx.fetchrow(END, old.id, old.version, status, expire_at, old.status))


# CANCELED before the end of the paid time: only a newer subscription does that; a user's own cancellation lets the
# period run.
LOCK_REPLACED = f"""
SELECT {COLUMNS} FROM headrace.subscriptions
WHERE user_id = $1 AND status = 'CANCELED' AND started_at IS NOT NULL AND expire_at > $2
ORDER BY expire_at DESC LIMIT 1
FOR NO KEY UPDATE
"""


async def lock_replaced(tx: Tx, user_id: str, now: datetime) -> Subscription | None:
    """The replaced subscription with the longest paid time."""
    return _found(await tx.fetchrow(LOCK_REPLACED, user_id, now))


RESTORE = f"""
UPDATE headrace.subscriptions SET status = 'ACTIVE', version = version + 1
WHERE id = $1 AND version = $2 AND status = 'CANCELED'
RETURNING {COLUMNS}
"""


async def restore(tx: Tx, old: Subscription) -> Subscription | None:
    return _found(await tx.fetchrow(RESTORE, old.id, old.version))


FALL_DUE = f"""
UPDATE headrace.subscriptions SET status = 'PAST_DUE', version = version + 1
WHERE id = $1 AND version = $2 AND status = 'ACTIVE'
RETURNING {COLUMNS}
"""


async def fall_due(tx: Tx, old: Subscription) -> Subscription | None:
    return _found(await tx.fetchrow(FALL_DUE, old.id, old.version))


SHORTEN = f"""
UPDATE headrace.subscriptions SET expire_at = $3, version = version + 1
WHERE id = $1 AND version = $2 AND status IN ('ACTIVE', 'PAST_DUE')
RETURNING {COLUMNS}
"""


async def shorten(tx: Tx, old: Subscription, expire_at: datetime) -> Subscription | None:
    """Remove its last period."""
    return _found(await tx.fetchrow(SHORTEN, old.id, old.version, expire_at))


SET_AUTO_RENEW = f"""
UPDATE headrace.subscriptions
SET auto_renew = $3, canceled_at = CASE WHEN $4 THEN coalesce(canceled_at, now()) END, version = version + 1
WHERE id = $1 AND version = $2 AND status = 'ACTIVE'
RETURNING {COLUMNS}
"""


async def set_auto_renew(tx: Tx, old: Subscription, *, auto_renew: bool, canceled: bool) -> Subscription | None:
    """Set whether an active one waits for its renewal at the end of its period."""
    return _found(await tx.fetchrow(SET_AUTO_RENEW, old.id, old.version, auto_renew, canceled))


MARK_EXPIRING_NOTIFIED = """
UPDATE headrace.subscriptions SET expiring_told_for = expire_at
WHERE id = $1 AND version = $2 AND expiring_told_for IS DISTINCT FROM expire_at
"""


async def mark_expiring_notified(tx: Tx, old: Subscription) -> bool:
    """Mark its expiry as announced; False if it was announced before."""
    return await tx.count(MARK_EXPIRING_NOTIFIED, old.id, old.version) == 1


# Only found here; each is changed under its payer's lock.
DUE = """
SELECT id, user_id FROM headrace.subscriptions
WHERE status IN ('ACTIVE', 'PAST_DUE') AND expire_at <= $1 AND (status = 'ACTIVE' OR expire_at <= $1 - $2::interval)
ORDER BY expire_at LIMIT $3
"""
EXPIRING = """
SELECT id, user_id FROM headrace.subscriptions
WHERE status IN ('ACTIVE', 'PAST_DUE') AND status = 'ACTIVE' AND expire_at > $1 AND expire_at <= $1 + $2::interval
  AND expiring_told_for IS DISTINCT FROM expire_at
ORDER BY expire_at LIMIT $3
"""


async def list_due(tx: Tx, now: datetime, *, grace: timedelta, limit: int) -> Sequence[tuple[str, str]]:
    """(subscription, user) of those whose period or grace is over."""
    return [(row["id"], row["user_id"]) for row in await tx.fetch(DUE, now, grace, limit)]


async def list_expiring(tx: Tx, now: datetime, *, notice: timedelta, limit: int) -> Sequence[tuple[str, str]]:
    """(subscription, user) of those that end soon and were not announced."""
    return [(row["id"], row["user_id"]) for row in await tx.fetch(EXPIRING, now, notice, limit)]


@dataclass(frozen=True, slots=True)
class Filter:
    """Filters of subscriptions; None does not filter."""

    user_id: str | None = None
    status: SubscriptionStatus | None = None
    plan_id: str | None = None


SELECT_SUBSCRIPTIONS = f"SELECT {COLUMNS} FROM headrace.subscriptions"


async def list_subscriptions(tx: Tx, wanted: Filter, *, older_than: Mark | None, limit: int) -> list[Subscription]:
    """Newest first."""
    where = (
        Where()
        .eq("user_id", wanted.user_id)
        .eq("status", wanted.status)
        .eq("plan_id", wanted.plan_id)
        .older_than(("created_at", "id"), older_than)
    )
    rows = await tx.fetch(
        f"{SELECT_SUBSCRIPTIONS} {where.sql} ORDER BY created_at DESC, id DESC LIMIT ${where.next}", *where.args, limit
    )
    return [subscription_of(row) for row in rows]


LIST_OPEN = """
SELECT id FROM headrace.subscriptions WHERE user_id = $1 AND status IN ('PENDING', 'ACTIVE', 'PAST_DUE') ORDER BY id
"""


async def list_open(tx: Tx, user_id: str) -> list[str]:
    """Ids of subscriptions that have not ended."""
    return [row["id"] for row in await tx.fetch(LIST_OPEN, user_id)]


FORGET = "UPDATE headrace.subscriptions SET meta_json = NULL WHERE user_id = $1 AND meta_json IS NOT NULL"


async def forget(tx: Tx, user_id: str) -> int:
    return await tx.count(FORGET, user_id)


USER_EXISTS = "SELECT status <> 'DELETED' FROM headrace.users WHERE id = $1"


async def user_exists(tx: Tx, user_id: str) -> bool:
    return bool(await tx.fetchval(USER_EXISTS, user_id))

"""Time-driven changes of subscriptions: monthly free units, notices, ends. Run by a schedule that ships enabled.

Each subscription has its own transaction, under its payer's lock; the next run continues an interrupted one.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.audit import Who
from headrace.billing.granting import expire_entitlements, grant_to_all
from headrace.billing.periods import calendar_month
from headrace.billing.plans.model import FREE_PLAN
from headrace.billing.subscriptions import events, service, store
from headrace.billing.subscriptions.model import RenewalConfig, Subscription, SubscriptionStatus
from headrace.database import Database, Tx

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Renewed:
    """Counts of one run."""

    granted: int = 0
    notified: int = 0
    ended: int = 0
    expired_entitlements: int = 0


async def run_once(db: Database, config: RenewalConfig, *, now: datetime | None = None) -> Renewed:
    """Grant, announce and end what is due."""
    async with db.transaction(readonly=True) as tx:
        at = await store.clock(tx, now)
    grace, notice = timedelta(days=config.grace_days), timedelta(days=config.notice_days)
    granted = 0
    # Ahead, so that the new month begins with units.
    for month in dict.fromkeys((calendar_month(at), calendar_month(at + notice))):
        granted += await _grant_free(db, *month)

    async def end(tx: Tx, subscription: Subscription) -> bool:
        return await _end(tx, subscription, at, grace)

    notified = await _each(db, lambda tx: store.list_expiring(tx, at, notice=notice, limit=_BATCH), _notify)
    ended = await _each(db, lambda tx: store.list_due(tx, at, grace=grace, limit=_BATCH), end)
    return Renewed(granted, notified, ended, await _expire(db, at))


async def _grant_free(db: Database, start: datetime, end: datetime) -> int:
    granted = 0
    while True:
        async with db.transaction() as tx:
            done = await grant_to_all(
                tx, plan_id=FREE_PLAN, period_start=start, period_end=end, remark="free plan", limit=_BATCH
            )
        granted += done
        if done == 0:
            return granted


async def _each(
    db: Database,
    find: Callable[[Tx], Awaitable[Sequence[tuple[str, str]]]],
    act: Callable[[Tx, Subscription], Awaitable[bool]],
) -> int:
    """Apply ``act`` to each subscription found, until a query finds none that it changes."""
    total = 0
    while True:
        async with db.transaction(readonly=True) as tx:
            due = await find(tx)
        done = 0
        for subscription_id, user_id in due:
            async with db.transaction() as tx:
                await store.lock_payer(tx, user_id)
                locked = await store.lock_subscription(tx, subscription_id)
                done += locked is not None and await act(tx, locked)
        total += done
        if done == 0:
            return total


async def _notify(tx: Tx, subscription: Subscription) -> bool:
    notified = subscription.status is SubscriptionStatus.ACTIVE and await store.mark_expiring_notified(tx, subscription)
    if notified:
        await events.append(tx, Who.system(), "expiring", subscription)
    return notified


async def _end(tx: Tx, subscription: Subscription, now: datetime, grace: timedelta) -> bool:
    """End it after a check under the lock: it may have been renewed meanwhile."""
    if subscription.expire_at is None or subscription.expire_at > now:
        return False
    who = Who.system()
    if subscription.status is SubscriptionStatus.ACTIVE:
        if subscription.ends_when_over:
            await service.end(tx, who, subscription, SubscriptionStatus.CANCELED)
        elif subscription.auto_renew:
            await service.fall_due(tx, who, subscription)
        else:
            await service.end(tx, who, subscription, SubscriptionStatus.EXPIRED)
        return True
    if subscription.status is SubscriptionStatus.PAST_DUE and subscription.expire_at + grace <= now:
        await service.end(tx, who, subscription, SubscriptionStatus.EXPIRED)
        return True
    return False


async def _expire(db: Database, now: datetime) -> int:
    total = 0
    while True:
        async with db.transaction() as tx:
            done = await expire_entitlements(tx, now=now, limit=_BATCH)
        total += done
        if done < _BATCH:
            return total

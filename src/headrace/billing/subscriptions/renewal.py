"""What time does to subscriptions: free units month by month, notices, ends. Run by a schedule that ships enabled.

Each subscription is a transaction of its own, under its payer's lock; whatever was half done by one run is found by the
next.
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
    """What one run did."""

    granted: int = 0
    told: int = 0
    ended: int = 0
    expired_entitlements: int = 0


async def run_once(db: Database, config: RenewalConfig, *, now: datetime | None = None) -> Renewed:
    """Do all that is due."""
    async with db.transaction(readonly=True) as tx:
        at = await store.clock(tx, now)
    grace, notice = timedelta(days=config.grace_days), timedelta(days=config.notice_days)
    granted = 0
    # Ahead, so that no minute of the new month is without.
    for month in dict.fromkeys((calendar_month(at), calendar_month(at + notice))):
        granted += await _grant_free(db, *month)

    async def end(tx: Tx, subscription: Subscription) -> bool:
        return await _end(tx, subscription, at, grace)

    told = await _each(db, lambda tx: store.list_expiring(tx, at, notice=notice, limit=_BATCH), _tell)
    ended = await _each(db, lambda tx: store.list_due(tx, at, grace=grace, limit=_BATCH), end)
    return Renewed(granted, told, ended, await _expire(db, at))


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
    """Do it with each that is found, until a look finds nothing that it can be done with."""
    total = 0
    while True:
        async with db.transaction(readonly=True) as tx:
            found = await find(tx)
        done = 0
        for subscription_id, user_id in found:
            async with db.transaction() as tx:
                await store.lock_payer(tx, user_id)
                locked = await store.lock_subscription(tx, subscription_id)
                done += locked is not None and await act(tx, locked)
        total += done
        if done == 0:
            return total


async def _tell(tx: Tx, subscription: Subscription) -> bool:
    told = subscription.status is SubscriptionStatus.ACTIVE and await store.tell_expiring(tx, subscription)
    if told:
        await events.tell(tx, Who.system(), "expiring", subscription)
    return told


async def _end(tx: Tx, found: Subscription, now: datetime, grace: timedelta) -> bool:
    """Seen again under the lock: it may have been renewed meanwhile."""
    if found.expire_at is None or found.expire_at > now:
        return False
    who = Who.system()
    if found.status is SubscriptionStatus.ACTIVE:
        if found.ends_when_over:
            await service.end(tx, who, found, SubscriptionStatus.CANCELED)
        elif found.auto_renew:
            await service.fall_due(tx, who, found)
        else:
            await service.end(tx, who, found, SubscriptionStatus.EXPIRED)
        return True
    if found.status is SubscriptionStatus.PAST_DUE and found.expire_at + grace <= now:
        await service.end(tx, who, found, SubscriptionStatus.EXPIRED)
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

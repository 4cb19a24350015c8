"""Verbs of subscriptions: each change writes audit and event in the same transaction.

A user has one live subscription at a time. A newly paid one replaces another at once; the old one's remaining units
stay until its own end, because they were paid for.
"""

from datetime import datetime

from headrace import audit
from headrace.access import AdminOnly, Caller, PreconditionFailed, check_version
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.billing.periods import period_end
from headrace.billing.subscriptions import events, store
from headrace.billing.subscriptions.errors import SubscriptionEnded, SubscriptionNotFound, SubscriptionUnpaid
from headrace.billing.subscriptions.model import Subscription, SubscriptionStatus
from headrace.billing.subscriptions.store import Filter
from headrace.database import Tx
from headrace.sql import Mark

EVERY_USER = "*"


async def get_subscription(tx: Tx, caller: Caller, subscription_id: str) -> Subscription:
    """One of the caller's subscriptions; administrators read all, which is audited."""
    found = await store.find_subscription(tx, subscription_id)
    return await _visible(tx, caller, found)


async def lock_own(tx: Tx, caller: Caller, subscription_id: str, *, expected: int | None = None) -> Subscription:
    """One of the caller's subscriptions, under the payer's lock; administrators reach all."""
    found = await _visible(tx, caller, await store.find_subscription(tx, subscription_id))
    await store.lock_payer(tx, found.user_id)
    locked = await store.lock_subscription(tx, subscription_id)
    assert locked is not None, "subscriptions are not deleted"
    check_version(locked.version, expected)
    return locked


async def list_subscriptions(
    tx: Tx, caller: Caller, wanted: Filter, *, older_than: Mark | None = None, limit: int
) -> list[Subscription]:
    """Newest first. Only administrators list other users' subscriptions."""
    if wanted.user_id != caller.user_id:
        if not caller.is_admin:
            raise AdminOnly("Only an administrator may list other people's subscriptions.")
        owner = wanted.user_id or EVERY_USER
        resource = Resource(ResourceType.SUBSCRIPTION, EVERY_USER)
        await audit.record(tx, caller.who, Action.READ, resource, data={"user_id": owner})
    return await store.list_subscriptions(tx, wanted, older_than=older_than, limit=limit)


async def cancel(tx: Tx, caller: Caller, subscription_id: str, *, expected: int | None = None) -> Subscription:
    """Cancel: an active one ends with its period and keeps its units until then; an unpaid one ends at once.
    Idempotent."""
    old = await lock_own(tx, caller, subscription_id, expected=expected)
    if old.status in (SubscriptionStatus.PENDING, SubscriptionStatus.PAST_DUE):
        return await end(tx, caller.who, old, SubscriptionStatus.CANCELED)
    if old.status is SubscriptionStatus.CANCELED or (old.is_live and old.ends_when_over):
        return old
    if not old.is_live:
        raise SubscriptionEnded
    new = _updated(await store.set_auto_renew(tx, old, auto_renew=False, canceled=True))
    await audit.record(tx, caller.who, Action.DISABLED, resource_of(new), old=old, new=new)
    return new


async def resume(tx: Tx, caller: Caller, subscription_id: str, *, expected: int | None = None) -> Subscription:
    """Undo a cancellation while the period runs, or let the subscription wait for its renewal."""
    old = await lock_own(tx, caller, subscription_id, expected=expected)
    if old.status is SubscriptionStatus.PENDING:
        raise SubscriptionUnpaid
    if old.status is not SubscriptionStatus.ACTIVE:
        raise SubscriptionEnded
    if old.auto_renew and not old.ends_when_over:
        return old
    new = _updated(await store.set_auto_renew(tx, old, auto_renew=True, canceled=False))
    await audit.record(tx, caller.who, Action.ENABLED, resource_of(new), old=old, new=new)
    return new


def next_period(subscription: Subscription, now: datetime) -> tuple[datetime, datetime, datetime]:
    """(anchor, start, end) of the period that a payment buys now: after the present one while that runs, otherwise from
    now on, so that no unusable days are paid for."""
    runs = subscription.status is SubscriptionStatus.ACTIVE
    if runs and subscription.effective_at and subscription.expire_at and subscription.expire_at > now:
        anchor, start = subscription.effective_at, subscription.expire_at
    else:
        anchor = start = now
    return anchor, start, period_end(anchor, start)


async def activate(
    tx: Tx,
    who: Who,
    old: Subscription,
    *,
    live: Subscription | None,
    anchor: datetime,
    start: datetime,
    end_at: datetime,
) -> Subscription:
    """Begin it, or add a period. Ends the user's other live subscription. The payer is locked."""
    if live is not None and live.id != old.id:
        await end(tx, who, live, SubscriptionStatus.CANCELED, replaced_by=old.id)
    new = _updated(await store.activate(tx, old, started_at=start, effective_at=anchor, expire_at=end_at))
    action = Action.UPDATED if old.status is SubscriptionStatus.ACTIVE else Action.ENABLED
    await audit.record(tx, who, action, resource_of(new), old=old, new=new, data={"period_start": start.isoformat()})
    await events.append(tx, who, "activated", new)
    return new


async def end(
    tx: Tx,
    who: Who,
    old: Subscription,
    status: SubscriptionStatus,
    *,
    expire_at: datetime | None = None,
    replaced_by: str | None = None,
) -> Subscription:
    """End it: CANCELED, EXPIRED or REFUNDED. Entitlements stay unchanged. The payer is locked."""
    new = _updated(await store.end(tx, old, status, expire_at=expire_at))
    data = None if replaced_by is None else {"replaced_by": replaced_by}
    await audit.record(tx, who, Action.DISABLED, resource_of(new), old=old, new=new, data=data)
    if old.status is not SubscriptionStatus.PENDING or status is SubscriptionStatus.REFUNDED:
        await events.append(tx, who, status.lower(), new)  # a subscription that never began has no event
    return new


async def restore_replaced(tx: Tx, who: Who, user_id: str, now: datetime) -> Subscription | None:
    """Restore the subscription that a refunded one had replaced, if its paid time has not ended.

    It ends with its period, because it was canceled; ``resume`` lets it wait for its renewal.
    """
    if await store.lock_live(tx, user_id) is not None or not await store.user_exists(tx, user_id):
        return None
    old = await store.lock_replaced(tx, user_id, now)
    if old is None:
        return None
    new = _updated(await store.restore(tx, old))
    await audit.record(tx, who, Action.ENABLED, resource_of(new), old=old, new=new, data={"reason": "refund"})
    await events.append(tx, who, "activated", new)
    return new


async def fall_due(tx: Tx, who: Who, old: Subscription) -> Subscription:
    """Mark it PAST_DUE: its period is over and its renewal unpaid."""
    new = _updated(await store.fall_due(tx, old))
    await audit.record(tx, who, Action.UPDATED, resource_of(new), old=old, new=new)
    await events.append(tx, who, "past_due", new)
    return new


async def shorten(tx: Tx, who: Who, old: Subscription, expire_at: datetime) -> Subscription:
    """Remove a refunded future period; the present one stays."""
    new = _updated(await store.shorten(tx, old, expire_at))
    await audit.record(tx, who, Action.UPDATED, resource_of(new), old=old, new=new, data={"reason": "refund"})
    return new


def resource_of(subscription: Subscription) -> Resource:
    return Resource(ResourceType.SUBSCRIPTION, subscription.id, {"user_id": subscription.user_id})


async def _visible(tx: Tx, caller: Caller, found: Subscription | None) -> Subscription:
    if found is None or (found.user_id != caller.user_id and not caller.is_admin):
        raise SubscriptionNotFound
    if found.user_id != caller.user_id:
        await audit.record(tx, caller.who, Action.READ, resource_of(found))
    return found


def _updated(new: Subscription | None) -> Subscription:
    """The updated row; the payer's lock excludes other writers, so a missing row was changed by hand."""
    if new is None:
        raise PreconditionFailed
    return new

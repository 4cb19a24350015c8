"""Settles payments and refunds that WeChat Pay reports, exactly once.

Notices and answers hold the same facts, and come in any number and order. The state of the order decides: it moves once
from PENDING or CLOSED to PAID, and the units are granted in that transaction.
"""

from collections.abc import Iterable
from datetime import datetime

from headrace import audit, logs
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.billing import granting
from headrace.billing.payments import store
from headrace.billing.payments.errors import NoticeWrong, OrderNotFound, WeChatPayRefused, WeChatPayUnavailable
from headrace.billing.payments.model import Order, OrderKind, OrderStatus, Refund, RefundState, Trade, TradeState
from headrace.billing.payments.service import Payments, resource_of
from headrace.billing.subscriptions import service as subscriptions
from headrace.billing.subscriptions import store as subscriptions_store
from headrace.billing.subscriptions.model import Subscription, SubscriptionStatus
from headrace.database import Database, Tx

log = logs.get(__name__)

_UNPAID = (OrderStatus.PENDING, OrderStatus.CLOSED)


def check_trade(order: Order, trade: Trade, *, app_id: str, mch_id: str) -> None:
    """``NoticeWrong`` unless sum and merchant match the order."""
    if (trade.amount_cents, trade.currency) != (order.amount_cents, order.currency):
        raise NoticeWrong("The amount or the currency is not the order's.", reason="amount_mismatch")
    if trade.mch_id not in (None, mch_id) or trade.app_id not in (None, app_id):
        raise NoticeWrong("This is a payment to another merchant.", reason="merchant_mismatch")


async def settle_trade(
    db: Database, payments: Payments, who: Who, trade: Trade, *, now: datetime | None = None
) -> Order:
    """Settle a payment. Idempotent. ``OrderNotFound``, ``NoticeWrong``.

    A payment closes the user's other orders, here and at WeChat Pay.
    """
    config = payments.wechatpay.config
    closed: list[Order] = []
    async with db.transaction() as tx:
        order = await _settle_trade(tx, who, trade, app_id=config.app_id, mch_id=config.mch_id, now=now, closed=closed)
    await close_at_wechatpay(db, payments, closed)
    return order


async def close_at_wechatpay(db: Database, payments: Payments, orders: Iterable[Order]) -> None:
    """Make closed orders impossible to pay, after the commit that closed them.

    An order that was paid a moment before cannot be closed: it is settled instead. If WeChat Pay does not answer, the
    order expires by itself, and a payment that still arrives is honoured.
    """
    if payments.maybe_wechatpay is None:
        return
    for order in orders:
        try:
            await _close_or_settle(db, payments, order)
        except (WeChatPayUnavailable, WeChatPayRefused, NoticeWrong) as exc:
            log.warning("payment.not_closed", order_id=order.id, error=exc.code)


async def _close_or_settle(db: Database, payments: Payments, order: Order) -> None:
    try:
        await payments.wechatpay.close_order(order.id)
    except WeChatPayRefused:
        trade = await payments.wechatpay.find_trade(order.id)
        if trade is None or trade.state is not TradeState.SUCCESS:
            raise
        await settle_trade(db, payments, Who.system(), trade)


async def _settle_trade(
    tx: Tx, who: Who, trade: Trade, *, app_id: str, mch_id: str, now: datetime | None, closed: list[Order]
) -> Order:
    order = await _lock(tx, trade.order_id)
    if order.status not in _UNPAID:
        return order
    if trade.state is TradeState.SUCCESS:
        check_trade(order, trade, app_id=app_id, mch_id=mch_id)
        return await _pay(tx, who, order, trade, now, closed)
    if trade.state is TradeState.REFUND:  # neither the payment nor its refund was reported
        return await _refund(tx, who, order, now=now, transaction_id=trade.transaction_id)
    if trade.state in (TradeState.CLOSED, TradeState.REVOKED, TradeState.PAYERROR) and (
        order.status is OrderStatus.PENDING
    ):
        return await close(tx, who, order)
    return order  # NOTPAY, USERPAYING: not yet


async def note_wrong(db: Database, who: Who, order_id: str, wrong: NoticeWrong) -> None:
    """Record a problem of a signed but contradictory notice, for an operator."""
    problem = str(wrong.details.get("reason", wrong.code))
    log.error("payment.wrong", order_id=order_id, problem=problem)
    async with db.transaction() as tx:
        if await store.note_problem(tx, order_id, problem):
            resource = Resource(ResourceType.PAYMENT, order_id)
            await audit.record(tx, who, Action.UPDATED, resource, data={"problem": problem})


async def _pay(tx: Tx, who: Who, order: Order, trade: Trade, now: datetime | None, closed: list[Order]) -> Order:
    subscription = await subscriptions_store.lock_subscription(tx, order.subscription_id)
    assert subscription is not None, "the order refers to it"
    entitlement_id, problem = None, None
    if subscription.status is SubscriptionStatus.REFUNDED:
        problem = "subscription_refunded"
    elif not await subscriptions_store.user_exists(tx, order.user_id):
        problem = "account_deleted"
    else:
        subscription, entitlement_id = await _deliver(tx, who, order, subscription, now)
        closed += await _close_others(tx, who, order)
    paid = await store.pay(
        tx,
        order,
        transaction_id=trade.transaction_id,
        paid_at=trade.paid_at,
        entitlement_id=entitlement_id,
        subscription_id=subscription.id,
        problem=problem,
    )
    assert paid is not None, "the payer is locked"
    await audit.record(tx, who, Action.UPDATED, resource_of(paid), old=order, new=paid)
    if problem is not None:  # the payment bought nothing: an operator refunds it
        log.error("payment.buys_nothing", order_id=order.id, problem=problem)
    return paid


async def _deliver(
    tx: Tx, who: Who, order: Order, ordered: Subscription, now: datetime | None
) -> tuple[Subscription, str]:
    """Grant the paid period: returns its subscription and entitlement.

    A second payment for the user's present plan adds a month to it. A live subscription of another plan ends.
    """
    at = await subscriptions_store.clock(tx, now)
    live = await subscriptions_store.lock_live(tx, order.user_id)
    adds_to_live = live is not None and live.id != ordered.id and live.plan_id == order.plan_id
    subscription = live if live is not None and adds_to_live else ordered
    if adds_to_live and ordered.status is SubscriptionStatus.PENDING:
        await subscriptions.end(tx, who, ordered, SubscriptionStatus.EXPIRED)
    anchor, start, end = subscriptions.next_period(subscription, at)
    await subscriptions.activate(tx, who, subscription, live=live, anchor=anchor, start=start, end_at=end)
    entitlement = await granting.grant(
        tx,
        user_id=order.user_id,
        plan_id=order.plan_id,
        subscription_id=subscription.id,
        units=order.units,
        period_start=start,
        period_end=end,
        features=order.features_json,
        remark=f"order {order.id}",
    )
    return subscription, entitlement.id


async def _close_others(tx: Tx, who: Who, paid: Order) -> list[Order]:
    """Close the user's other waiting orders, so that no month is paid for twice."""
    waiting = await store.lock_waiting(tx, paid.user_id)
    return [await close(tx, who, order) for order in waiting if order.id != paid.id]


async def close(tx: Tx, who: Who, order: Order) -> Order:
    """Close an unpaid order; the subscription that waited for it expires."""
    closed = await store.close(tx, order)
    assert closed is not None, "the payer is locked"
    await audit.record(tx, who, Action.DISABLED, resource_of(closed), old=order, new=closed)
    subscription = await subscriptions_store.lock_subscription(tx, order.subscription_id)
    if subscription is not None and subscription.status is SubscriptionStatus.PENDING:
        await subscriptions.end(tx, who, subscription, SubscriptionStatus.EXPIRED)
    return closed


async def settle_refund(tx: Tx, who: Who, refund: Refund, *, now: datetime | None = None) -> Order:
    """Settle a refund, whether requested here or at WeChat Pay. Idempotent."""
    order = await _lock(tx, refund.order_id)
    if refund.state is RefundState.PROCESSING or order.status is OrderStatus.REFUNDED:
        return order
    if refund.state is not RefundState.SUCCESS:
        return await _refund_failed(tx, who, order, refund)
    if refund.total_cents not in (None, order.amount_cents):
        raise NoticeWrong("The amount is not the order's.", reason="amount_mismatch")
    if refund.refund_cents is not None and refund.refund_cents < order.amount_cents:
        # A partial refund on WeChat Pay's own pages: an operator decides what it means for the subscription.
        if await store.note_problem(tx, order.id, "refunded_in_part"):
            data = {"refund_id": refund.refund_id, "refund_cents": str(refund.refund_cents)}
            await audit.record(tx, who, Action.UPDATED, resource_of(order), data=data)
        return order
    return await _refund(
        tx,
        who,
        order,
        now=now,
        refunded_at=refund.refunded_at,
        transaction_id=refund.transaction_id,
        refund_id=refund.refund_id,
    )


async def _refund(
    tx: Tx,
    who: Who,
    order: Order,
    *,
    now: datetime | None,
    refunded_at: datetime | None = None,
    transaction_id: str | None = None,
    refund_id: str | None = None,
) -> Order:
    await _take_back(tx, who, order, await subscriptions_store.clock(tx, now))
    refunded = await store.refund(
        tx, order, refunded_at=refunded_at, transaction_id=transaction_id, refund_id=refund_id
    )
    assert refunded is not None, "the payer is locked"
    await audit.record(tx, who, Action.REVOKED, resource_of(refunded), old=order, new=refunded)
    return refunded


async def _refund_failed(tx: Tx, who: Who, order: Order, refund: Refund) -> Order:
    if order.status is not OrderStatus.REFUNDING or order.refund_id != refund.refund_id:
        return order
    paid = await store.fail_refund(tx, order, f"refund_{refund.state.lower()}")
    assert paid is not None, "the payer is locked"
    await audit.record(tx, who, Action.UPDATED, resource_of(paid), old=order, new=paid)
    log.error("payment.refund_failed", order_id=order.id, state=refund.state)
    return paid


async def _take_back(tx: Tx, who: Who, order: Order, now: datetime) -> None:
    """Revoke the remaining units of this order, and the part of the subscription that it paid for."""
    subscription = await subscriptions_store.lock_subscription(tx, order.subscription_id)
    assert subscription is not None, "the order refers to it"
    period = None
    if order.entitlement_id is not None:
        await granting.suspend_entitlement(tx, order.entitlement_id)
        period = await store.find_period(tx, order.entitlement_id)
    if subscription.status is SubscriptionStatus.REFUNDED:
        return
    if period is None and order.kind is OrderKind.RENEWAL:
        return  # it bought nothing here: periods of earlier orders continue
    if period is not None and period[0] > now and subscription.is_live and subscription.expire_at == period[1]:
        await subscriptions.shorten(tx, who, subscription, period[0])
        return
    if period is not None and subscription.expire_at != period[1]:
        return  # an older period of a continuing subscription
    await _close_waiting(tx, who, subscription.id, exclude=order.id)
    await subscriptions.end(tx, who, subscription, SubscriptionStatus.REFUNDED, expire_at=now)
    await subscriptions.restore_replaced(tx, who, order.user_id, now)


async def _close_waiting(tx: Tx, who: Who, subscription_id: str, *, exclude: str | None = None) -> None:
    waiting = await store.lock_pending(tx, subscription_id)
    if waiting is None or waiting.id == exclude:
        return
    closed = await store.close(tx, waiting)
    if closed is not None:
        await audit.record(tx, who, Action.DISABLED, resource_of(closed), old=waiting, new=closed)


async def _lock(tx: Tx, order_id: str) -> Order:
    """The order, under its payer's lock. An order whose transaction has not committed is not found yet: WeChat Pay
    repeats its notice later."""
    found = await store.find_order(tx, order_id)
    if found is None:
        raise OrderNotFound
    await subscriptions_store.lock_payer(tx, found.user_id)
    locked = await store.lock_order(tx, order_id)
    assert locked is not None, "orders are not deleted"
    return locked

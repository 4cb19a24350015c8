"""Ordering a plan and preparing its payment.

1. ``order_plan`` or ``order_renewal``: the subscription and the order are committed.
2. ``prepare``: WeChat Pay returns a way to pay it, with no transaction open, and the answer is recorded. If the answer
   is lost, the same request with its Idempotency-Key gets another answer for the same order.
3. The payment arrives: ``settlement``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headrace import audit, ids
from headrace.access import Caller
from headrace.audit import Action
from headrace.billing.payments import settlement, store
from headrace.billing.payments.errors import (
    OrderNotFound,
    OrderNotPayable,
    PayerUnknown,
    PlanNotForSale,
    TooManyOrders,
)
from headrace.billing.payments.model import Order, OrderKind, OrderStatus, PayMethod
from headrace.billing.payments.service import Payments, resource_of
from headrace.billing.plans import service as plans
from headrace.billing.plans.model import Plan
from headrace.billing.subscriptions import service as subscriptions
from headrace.billing.subscriptions import store as subscriptions_store
from headrace.billing.subscriptions.errors import AlreadySubscribed, SubscriptionEnded, SubscriptionUnpaid
from headrace.billing.subscriptions.model import Subscription, SubscriptionStatus
from headrace.database import Database, Tx

_CURRENCY = "CNY"  # the only one that domestic merchants of WeChat Pay take


@dataclass(frozen=True, slots=True)
class Ordered:
    """``closed`` are superseded orders: close them at WeChat Pay after the commit."""

    subscription: Subscription
    order: Order
    closed: Sequence[Order] = ()


async def order_plan(
    tx: Tx, caller: Caller, payments: Payments, *, plan: str, method: PayMethod, auto_renew: bool
) -> Ordered:
    """Order a subscription that begins with the payment. A live one of another plan ends then: an upgrade.

    While an order for the same plan on the same terms waits to be paid, returns that order, so that none is paid twice.
    """
    _ = payments.wechatpay  # PaymentsOff before anything is written
    wanted = await plans.get_by_id_or_name(tx, plan)
    _check_for_sale(wanted)
    await _check_payer(tx, caller.user_id, method)
    await subscriptions_store.lock_payer(tx, caller.user_id)
    live = await subscriptions_store.lock_live(tx, caller.user_id)
    if live is not None and live.plan_id == wanted.id:
        raise AlreadySubscribed(subscription_id=live.id)
    waiting = await store.lock_waiting(tx, caller.user_id)
    now = await subscriptions_store.clock(tx)
    closed: list[Order] = []
    for order in waiting:
        if order.plan_id != wanted.id:
            continue
        subscription = await subscriptions_store.find_subscription(tx, order.subscription_id)
        assert subscription is not None, "the order refers to it"
        if _is_payable(order, wanted, method, now) and subscription.auto_renew == auto_renew:
            return Ordered(subscription, order)
        closed.append(await settlement.close(tx, caller.who, order))
    if len(waiting) - len(closed) >= payments.orders.max_waiting:
        raise TooManyOrders(most=payments.orders.max_waiting)
    order_id = ids.new("ord")
    subscription = await subscriptions_store.insert_pending(
        tx,
        ids.new("sub"),
        user_id=caller.user_id,
        plan_id=wanted.id,
        order_id=order_id,
        auto_renew=auto_renew,
    )
    new = subscriptions.resource_of(subscription)
    await audit.record(tx, caller.who, Action.CREATED, new, new=subscription)
    order = await _insert(tx, caller, payments, order_id, wanted, subscription, OrderKind.PURCHASE, method)
    return Ordered(subscription, order, closed)


async def order_renewal(
    tx: Tx, caller: Caller, payments: Payments, subscription_id: str, *, method: PayMethod
) -> Ordered:
    """Order the next period of a subscription at the plan's present price, or return the waiting order for it."""
    _ = payments.wechatpay
    subscription = await subscriptions.lock_own(tx, caller, subscription_id)
    if subscription.status is SubscriptionStatus.PENDING:
        raise SubscriptionUnpaid
    if not subscription.is_live:
        raise SubscriptionEnded
    plan = await plans.get_plan(tx, subscription.plan_id)
    waiting = await store.lock_pending(tx, subscription.id)
    if waiting is not None and _is_payable(waiting, plan, method, await subscriptions_store.clock(tx)):
        return Ordered(subscription, waiting)
    closed = [] if waiting is None else [await settlement.close(tx, caller.who, waiting)]
    _check_for_sale(plan)
    await _check_payer(tx, subscription.user_id, method)
    order = await _insert(tx, caller, payments, ids.new("ord"), plan, subscription, OrderKind.RENEWAL, method)
    return Ordered(subscription, order, closed)


def _is_payable(order: Order, plan: Plan, method: PayMethod, now: datetime) -> bool:
    """Whether a waiting order equals a new one: same payment method, same price, not expired."""
    price = (plan.price_cents, plan.currency, plan.monthly_quota)
    is_same = order.method is method and (order.amount_cents, order.currency, order.units) == price
    return is_same and order.expires_at > now


async def cancel(
    tx: Tx, caller: Caller, subscription_id: str, *, expected: int | None = None
) -> tuple[Subscription, Sequence[Order]]:
    """Cancel a subscription, and close its waiting order."""
    subscription = await subscriptions.cancel(tx, caller, subscription_id, expected=expected)
    waiting = await store.lock_pending(tx, subscription.id)
    return subscription, [] if waiting is None else [await settlement.close(tx, caller.who, waiting)]


async def prepare(db: Database, payments: Payments, order_id: str) -> Order:
    """Get the way to pay from WeChat Pay, unless it is recorded. ``OrderNotPayable`` when the order has ended."""
    async with db.transaction(readonly=True) as tx:
        order = await store.find_order(tx, order_id)
        openid = None if order is None else await store.find_openid(tx, order.user_id)
        now = await subscriptions_store.clock(tx)
    if order is None:
        raise OrderNotFound
    if order.is_prepared:
        return order
    if order.status is not OrderStatus.PENDING or order.expires_at <= now:
        raise OrderNotPayable
    code_url, prepay_id = await payments.wechatpay.prepare(
        order, openid=openid if order.method is PayMethod.JSAPI else None
    )
    async with db.transaction() as tx:
        return await store.prepare(tx, order.id, code_url=code_url, prepay_id=prepay_id)


async def _insert(
    tx: Tx,
    caller: Caller,
    payments: Payments,
    order_id: str,
    plan: Plan,
    subscription: Subscription,
    kind: OrderKind,
    method: PayMethod,
) -> Order:
    order = await store.insert_order(
        tx,
        order_id,
        user_id=subscription.user_id,
        plan_id=plan.id,
        subscription_id=subscription.id,
        kind=kind,
        method=method,
        description=plan.name,
        amount_cents=plan.price_cents,
        currency=plan.currency,
        units=plan.monthly_quota,
        features=plan.features_json,
        lifetime=payments.orders.lifetime,
    )
    await audit.record(tx, caller.who, Action.CREATED, resource_of(order), new=order)
    return order


def _check_for_sale(plan: Plan) -> None:
    if not plan.is_for_sale:
        raise PlanNotForSale(
            "This plan is no longer offered: choose another one."
            if not plan.is_active
            else "This plan is free and needs no order: every user has it."
        )
    if plan.currency != _CURRENCY:
        raise PlanNotForSale(f"WeChat Pay accepts only {_CURRENCY}, and the price of this plan is in {plan.currency}.")


async def _check_payer(tx: Tx, user_id: str, method: PayMethod) -> None:
    if method is PayMethod.JSAPI and await store.find_openid(tx, user_id) is None:
        raise PayerUnknown(field="method")

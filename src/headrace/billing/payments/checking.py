"""Queries WeChat Pay about open orders until they are paid or expired, because notices get lost. Scheduled.

Each order is claimed by moving ``checked_at``, queried with no transaction open, and settled like a notice.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from headrace import logs
from headrace.audit import Who
from headrace.billing.payments import refunding, settlement, store
from headrace.billing.payments.errors import NoticeWrong, WeChatPayRefused, WeChatPayUnavailable
from headrace.billing.payments.model import Order, OrderStatus, TradeState
from headrace.billing.payments.service import Payments
from headrace.billing.subscriptions import store as subscriptions_store
from headrace.database import Database

log = logs.get(__name__)

_BATCH = 50
# A payment in the last second reaches WeChat Pay's records a little later.
_PAYMENT_GRACE = timedelta(minutes=1)


async def run_once(db: Database, payments: Payments, *, now: datetime | None = None) -> Mapping[str, int]:
    """Query all open orders that were not queried lately; returns counts by state."""
    counted: Counter[str] = Counter()
    if not payments.are_on:
        return counted
    while True:
        async with db.transaction() as tx:
            orders = await store.claim_unchecked(tx, older_than=payments.orders.check_every, limit=_BATCH, now=now)
        for order in orders:
            counted[await _check_safely(db, payments, order, now)] += 1
        if len(orders) < _BATCH:
            return dict(counted)


async def check(db: Database, payments: Payments, order: Order, *, now: datetime | None = None) -> Order:
    """Query WeChat Pay about this order, and settle the answer."""
    try:
        match order.status:
            case OrderStatus.PENDING | OrderStatus.CLOSED:
                return await _check_payment(db, payments, order, now)
            case OrderStatus.REFUNDING:
                return await _check_refund(db, payments, order, now)
            case _:
                return order
    except NoticeWrong as exc:
        await settlement.note_wrong(db, Who.system(), order.id, exc)
        raise


async def _check_safely(db: Database, payments: Payments, order: Order, now: datetime | None) -> str:
    """Check one order; a failure does not stop the others."""
    try:
        return (await check(db, payments, order, now=now)).status.lower()
    except (WeChatPayUnavailable, WeChatPayRefused, NoticeWrong) as exc:
        log.warning("payment.not_checked", order_id=order.id, error=exc.code)
        return "unknown"


async def _check_payment(db: Database, payments: Payments, order: Order, now: datetime | None) -> Order:
    wechatpay = payments.wechatpay
    trade = await wechatpay.find_trade(order.id)
    if trade is not None and trade.state not in (TradeState.NOTPAY, TradeState.USERPAYING):
        return await settlement.settle_trade(db, payments, Who.system(), trade, now=now)
    async with db.transaction(readonly=True) as tx:
        at = await subscriptions_store.clock(tx, now)
    if order.status is not OrderStatus.PENDING or order.expires_at + _PAYMENT_GRACE > at:
        return order
    if trade is not None:
        await wechatpay.close_order(order.id)  # refused if it was paid just now: the next check finds that
    async with db.transaction() as tx:
        await subscriptions_store.lock_payer(tx, order.user_id)
        found = await store.lock_order(tx, order.id)
        assert found is not None, "orders are not deleted"
        return await settlement.close(tx, Who.system(), found) if found.status is OrderStatus.PENDING else found


async def _check_refund(db: Database, payments: Payments, order: Order, now: datetime | None) -> Order:
    """Query a refund; one that WeChat Pay does not know is requested again under the same number."""
    assert order.refund_id is not None
    refund = await payments.wechatpay.find_refund(order.refund_id)
    if refund is None:
        return await refunding.ask(db, payments, Who.system(), order)
    async with db.transaction() as tx:
        return await settlement.settle_refund(tx, Who.system(), refund, now=now)

"""Full refunds by administrators: first recorded, then requested from WeChat Pay."""

from headrace import audit, ids
from headrace.access import AdminOnly, Caller
from headrace.audit import Action, Who
from headrace.billing.payments import settlement, store
from headrace.billing.payments.errors import OrderNotFound, OrderNotPaid, WeChatPayRefused, WeChatPayUnavailable
from headrace.billing.payments.model import Order, OrderStatus, Refund, RefundState
from headrace.billing.payments.service import Payments, resource_of
from headrace.billing.subscriptions import store as subscriptions_store
from headrace.database import Database, Tx


async def begin_refund(tx: Tx, caller: Caller, payments: Payments, order_id: str, *, reason: str) -> Order:
    """PAID → REFUNDING. Idempotent: a refund under way or done is returned."""
    if not caller.is_admin:
        raise AdminOnly
    _ = payments.wechatpay
    found = await store.find_order(tx, order_id)
    if found is None:
        raise OrderNotFound
    await subscriptions_store.lock_payer(tx, found.user_id)
    old = await store.lock_order(tx, order_id)
    assert old is not None, "orders are not deleted"
    if old.status in (OrderStatus.REFUNDING, OrderStatus.REFUNDED):
        return old
    if old.status is not OrderStatus.PAID:
        raise OrderNotPaid
    new = await store.begin_refund(tx, old, refund_id=ids.new("rfd"), reason=reason)
    assert new is not None, "the payer is locked"
    await audit.record(tx, caller.who, Action.UPDATED, resource_of(new), old=old, new=new, data={"reason": reason})
    return new


async def send_refund(db: Database, payments: Payments, caller: Caller, order: Order) -> Order:
    """Request the refund from WeChat Pay. If it does not answer, the schedule repeats the request."""
    if order.status is not OrderStatus.REFUNDING:
        return order
    try:
        return await ask(db, payments, caller.who, order)
    except WeChatPayUnavailable:
        return order


async def ask(db: Database, payments: Payments, who: Who, order: Order) -> Order:
    """Request a recorded refund. If WeChat Pay refuses, the order is PAID as before, with a problem, and the error
    gives the reason."""
    assert order.refund_id is not None
    try:
        refund = await payments.wechatpay.refund(order)
    except WeChatPayRefused:
        failed = Refund(order.id, order.refund_id, RefundState.CLOSED, None, None, None, None)
        async with db.transaction() as tx:
            await settlement.settle_refund(tx, who, failed)
        raise
    async with db.transaction() as tx:
        return await settlement.settle_refund(tx, who, refund)

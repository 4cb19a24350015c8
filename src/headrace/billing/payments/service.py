"""Dependencies of the payment verbs, and the verbs that read orders."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace import audit
from headrace.access import AdminOnly, Caller
from headrace.audit import Action, Resource, ResourceType
from headrace.billing.payments import store
from headrace.billing.payments.config import OrderConfig, WeChatPayConfig
from headrace.billing.payments.errors import OrderNotFound, PaymentsOff
from headrace.billing.payments.model import Order, OrderStatus
from headrace.database import Tx
from headrace.sql import Mark

if TYPE_CHECKING:
    from headrace.billing.payments.wechatpay import WeChatPay

EVERY_USER = "*"


@dataclass(frozen=True, slots=True)
class Payments:
    """WeChat Pay and the rules of orders, opened by ``open_payments``."""

    orders: OrderConfig
    maybe_wechatpay: "WeChatPay | None"

    @property
    def are_on(self) -> bool:
        return self.maybe_wechatpay is not None

    @property
    def wechatpay(self) -> "WeChatPay":
        """WeChat Pay, or ``PaymentsOff``."""
        if self.maybe_wechatpay is None:
            raise PaymentsOff
        return self.maybe_wechatpay


@asynccontextmanager
async def open_payments(config: WeChatPayConfig | None, orders: OrderConfig) -> AsyncIterator[Payments]:
    if config is None:
        yield Payments(orders, None)
        return
    from headrace.billing.payments.wechatpay import WeChatPay

    async with WeChatPay(config) as wechatpay:
        yield Payments(orders, wechatpay)


async def get_order(tx: Tx, caller: Caller, order_id: str) -> Order:
    """One of the caller's orders; administrators read all, which is audited."""
    order = await store.find_order(tx, order_id)
    if order is None or (order.user_id != caller.user_id and not caller.is_admin):
        raise OrderNotFound
    if order.user_id != caller.user_id:
        await audit.record(tx, caller.who, Action.READ, resource_of(order))
    return order


async def list_orders(
    tx: Tx,
    caller: Caller,
    *,
    user_id: str | None,
    status: OrderStatus | None = None,
    has_problem: bool = False,
    older_than: Mark | None = None,
    limit: int,
) -> list[Order]:
    """Newest first. Only administrators list other users' orders, or all (None)."""
    if user_id != caller.user_id:
        if not caller.is_admin:
            raise AdminOnly("Only an administrator may list other people's orders.")
        resource = Resource(ResourceType.PAYMENT, EVERY_USER)
        await audit.record(tx, caller.who, Action.READ, resource, data={"user_id": user_id or EVERY_USER})
    return await store.list_orders(
        tx, user_id=user_id, status=status, has_problem=has_problem, older_than=older_than, limit=limit
    )


async def resolve_problem(tx: Tx, caller: Caller, order_id: str, *, reason: str) -> Order:
    """Mark an order's problem as resolved, which ends its alarm. Idempotent; if it persists, WeChat Pay's next message
    records it again."""
    if not caller.is_admin:
        raise AdminOnly
    old = await store.lock_order(tx, order_id)
    if old is None:
        raise OrderNotFound
    if old.problem is None:
        return old
    new = await store.resolve(tx, old)
    assert new is not None, "the row is locked"
    await audit.record(tx, caller.who, Action.UPDATED, resource_of(new), old=old, new=new, data={"reason": reason})
    return new


def resource_of(order: Order) -> Resource:
    return Resource(ResourceType.PAYMENT, order.id, {"user_id": order.user_id})

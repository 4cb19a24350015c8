"""Orders, and WeChat Pay's messages about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class OrderStatus(StrEnum):
    PENDING = "PENDING"  # to be paid
    PAID = "PAID"
    CLOSED = "CLOSED"  # was not paid
    REFUNDING = "REFUNDING"
    REFUNDED = "REFUNDED"


class OrderKind(StrEnum):
    PURCHASE = "PURCHASE"  # begins a subscription
    RENEWAL = "RENEWAL"  # adds a period to one


class PayMethod(StrEnum):
    NATIVE = "NATIVE"  # by scanning a code
    JSAPI = "JSAPI"  # within WeChat: a mini-program or an official account


_S = OrderStatus
# The same as headrace.payment_order_may_move; docs/why/states.md draws it.
MOVES: Mapping[OrderStatus, frozenset[OrderStatus]] = {
    _S.PENDING: frozenset({_S.PAID, _S.CLOSED, _S.REFUNDED}),
    _S.CLOSED: frozenset({_S.PAID, _S.REFUNDED}),
    _S.PAID: frozenset({_S.REFUNDING, _S.REFUNDED}),
    _S.REFUNDING: frozenset({_S.PAID, _S.REFUNDED}),
    _S.REFUNDED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Order:
    """A row of payment_orders."""

    id: str
    user_id: str
    plan_id: str
    subscription_id: str
    entitlement_id: str | None
    kind: OrderKind
    method: PayMethod
    status: OrderStatus
    description: str
    amount_cents: int
    currency: str
    units: int
    features_json: Any
    code_url: str | None
    prepay_id: str | None
    transaction_id: str | None
    refund_id: str | None
    refund_reason: str | None
    problem: str | None
    expires_at: datetime
    checked_at: datetime | None
    paid_at: datetime | None
    refunded_at: datetime | None
    version: int
    created_at: datetime
    updated_at: datetime

    @property
    def is_prepared(self) -> bool:
        """Whether WeChat Pay has returned a way to pay it."""
        return (self.code_url or self.prepay_id) is not None


class TradeState(StrEnum):
    """The state of an order at WeChat Pay."""

    SUCCESS = "SUCCESS"
    REFUND = "REFUND"  # was paid, and refunded in whole or in part
    NOTPAY = "NOTPAY"
    CLOSED = "CLOSED"
    REVOKED = "REVOKED"
    USERPAYING = "USERPAYING"
    PAYERROR = "PAYERROR"


class RefundState(StrEnum):
    SUCCESS = "SUCCESS"
    CLOSED = "CLOSED"  # failed
    ABNORMAL = "ABNORMAL"  # failed: an operator must resolve it at WeChat Pay
    PROCESSING = "PROCESSING"


@dataclass(frozen=True, slots=True)
class Trade:
    """A payment in a notice or an answer of WeChat Pay."""

    order_id: str
    state: TradeState
    transaction_id: str | None
    amount_cents: int | None
    currency: str | None
    app_id: str | None
    mch_id: str | None
    paid_at: datetime | None


@dataclass(frozen=True, slots=True)
class Refund:
    """A refund in a notice or an answer of WeChat Pay."""

    order_id: str
    refund_id: str
    state: RefundState
    transaction_id: str | None
    total_cents: int | None
    refund_cents: int | None
    refunded_at: datetime | None

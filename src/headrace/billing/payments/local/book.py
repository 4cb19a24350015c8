"""The orders and refunds of a WeChat Pay on this machine, and the rules by which they move. In memory alone."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Refused(Exception):
    """What WeChat Pay answers to a request that it does not like."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(slots=True)
class LocalRefund:
    number: str
    cents: int
    notify_url: str
    reason: str
    refund_id: str = field(default_factory=lambda: f"5030{secrets.randbelow(10**14):014}")
    status: str = "PROCESSING"
    success_time: str | None = None


@dataclass(slots=True)
class LocalOrder:
    number: str
    asked: Mapping[str, Any]
    trade_type: str
    state: str = "NOTPAY"
    transaction_id: str | None = None
    success_time: str | None = None
    refund: LocalRefund | None = None

    @property
    def cents(self) -> int:
        return int(self.asked["amount"]["total"])

    @property
    def notify_url(self) -> str:
        return str(self.asked["notify_url"])


_WANTED = ("appid", "mchid", "description", "out_trade_no", "notify_url", "amount")


class Book:
    def __init__(self) -> None:
        self.orders: dict[str, LocalOrder] = {}

    def open(self, asked: Mapping[str, Any], trade_type: str) -> LocalOrder:
        """A new order, or the same one for the same request."""
        missing = [name for name in _WANTED if not asked.get(name)]
        if missing or not isinstance(asked["amount"], dict) or int(asked["amount"].get("total", 0)) < 1:
            raise Refused(400, "PARAM_ERROR", f"missing or wrong: {', '.join(missing) or 'amount'}")
        if trade_type == "JSAPI" and not (asked.get("payer") or {}).get("openid"):
            raise Refused(400, "PARAM_ERROR", "payer.openid is missing")
        number = str(asked["out_trade_no"])
        order = self.orders.setdefault(number, LocalOrder(number, asked, trade_type))
        if order.asked["amount"] != asked["amount"]:
            raise Refused(403, "OUT_TRADE_NO_USED", "this order number was used for another sum")
        if order.state == "SUCCESS":
            raise Refused(400, "ORDERPAID", "this order is paid")
        if order.state != "NOTPAY":
            raise Refused(400, "ORDER_CLOSED", "this order is closed")
        return order

    def find(self, number: str) -> LocalOrder:
        if (order := self.orders.get(number)) is None:
            raise Refused(404, "ORDER_NOT_EXIST", "there is no such order")
        return order

    def close(self, number: str) -> None:
        order = self.find(number)
        if order.state not in ("NOTPAY", "CLOSED"):
            raise Refused(400, "ORDERPAID", "this order is paid")
        order.state = "CLOSED"

    def pay(self, number: str) -> LocalOrder:
        order = self.find(number)
        if order.state != "NOTPAY":
            raise Refused(400, "ORDER_CLOSED", f"this order is {order.state}")
        order.state, order.success_time = "SUCCESS", _now()
        order.transaction_id = f"4200{secrets.randbelow(10**24):024}"
        return order

    def ask_refund(self, asked: Mapping[str, Any]) -> tuple[LocalOrder, bool]:
        """The refund that was asked for, and whether it is new."""
        order = self.find(str(asked["out_trade_no"]))
        number = str(asked["out_refund_no"])
        if order.refund is not None and order.refund.number == number:
            return order, False
        if order.state != "SUCCESS":
            raise Refused(403, "INVALID_REQUEST", f"this order is {order.state}")
        cents = int(asked["amount"]["refund"])
        if not 0 < cents <= order.cents:
            raise Refused(403, "NOT_ENOUGH", "more than was paid")
        reason, notify_url = str(asked.get("reason") or ""), str(asked.get("notify_url") or order.notify_url)
        order.refund = LocalRefund(number, cents, notify_url, reason)
        return order, True

    def find_refund(self, number: str) -> LocalOrder:
        for order in self.orders.values():
            if order.refund is not None and order.refund.number == number:
                return order
        raise Refused(404, "RESOURCE_NOT_EXISTS", "there is no such refund")

    def end_refund(self, order: LocalOrder, status: str = "SUCCESS") -> None:
        assert order.refund is not None
        order.refund.status, order.refund.success_time = status, _now()
        if status == "SUCCESS":
            order.state = "REFUND"


def transaction_of(order: LocalOrder) -> dict[str, Any]:
    """As WeChat Pay tells of a payment."""
    told: dict[str, Any] = {
        "appid": order.asked["appid"],
        "mchid": order.asked["mchid"],
        "out_trade_no": order.number,
        "trade_type": order.trade_type,
        "trade_state": order.state,
        "trade_state_desc": order.state,
        "amount": {"total": order.cents, "currency": "CNY", "payer_total": order.cents, "payer_currency": "CNY"},
    }
    if order.transaction_id is not None:
        told |= {"transaction_id": order.transaction_id, "success_time": order.success_time, "bank_type": "OTHERS"}
        told["payer"] = order.asked.get("payer") or {"openid": "o-somebody-who-scanned"}
    return told


def refund_of(order: LocalOrder, *, in_notice: bool) -> dict[str, Any]:
    """As it tells of a refund: a notice calls the state otherwise than an answer."""
    refund = order.refund
    assert refund is not None
    return {
        "mchid": order.asked["mchid"],
        "out_trade_no": order.number,
        "transaction_id": order.transaction_id,
        "out_refund_no": refund.number,
        "refund_id": refund.refund_id,
        "refund_status" if in_notice else "status": refund.status,
        "success_time": refund.success_time,
        "amount": {"total": order.cents, "refund": refund.cents, "payer_total": order.cents, "currency": "CNY"},
    }


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())

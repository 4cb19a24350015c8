"""Orders and refunds of the local WeChat Pay, and their state rules. Kept only in memory."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Refused(Exception):
    """A request that WeChat Pay refuses."""

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
    request: Mapping[str, Any]
    trade_type: str
    state: str = "NOTPAY"
    transaction_id: str | None = None
    success_time: str | None = None
    refund: LocalRefund | None = None

    @property
    def cents(self) -> int:
        return int(self.request["amount"]["total"])

    @property
    def notify_url(self) -> str:
        return str(self.request["notify_url"])


_REQUIRED_FIELDS = ("appid", "mchid", "description", "out_trade_no", "notify_url", "amount")


class Book:
    def __init__(self) -> None:
        self.orders: dict[str, LocalOrder] = {}

    def open(self, request: Mapping[str, Any], trade_type: str) -> LocalOrder:
        """A new order, or the same one for the same request."""
        missing = [name for name in _REQUIRED_FIELDS if not request.get(name)]
        if missing or not isinstance(request["amount"], dict) or int(request["amount"].get("total", 0)) < 1:
            raise Refused(400, "PARAM_ERROR", f"missing or wrong: {', '.join(missing) or 'amount'}")
        if trade_type == "JSAPI" and not (request.get("payer") or {}).get("openid"):
            raise Refused(400, "PARAM_ERROR", "payer.openid is missing")
        number = str(request["out_trade_no"])
        order = self.orders.setdefault(number, LocalOrder(number, request, trade_type))
        if order.request["amount"] != request["amount"]:
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

    def ask_refund(self, request: Mapping[str, Any]) -> tuple[LocalOrder, bool]:
        """The requested refund, and whether it is new."""
        order = self.find(str(request["out_trade_no"]))
        number = str(request["out_refund_no"])
        if order.refund is not None and order.refund.number == number:
            return order, False
        if order.state != "SUCCESS":
            raise Refused(403, "INVALID_REQUEST", f"this order is {order.state}")
        cents = int(request["amount"]["refund"])
        if not 0 < cents <= order.cents:
            raise Refused(403, "NOT_ENOUGH", "more than was paid")
        reason, notify_url = str(request.get("reason") or ""), str(request.get("notify_url") or order.notify_url)
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
    """A payment in WeChat Pay's format."""
    message: dict[str, Any] = {
        "appid": order.request["appid"],
        "mchid": order.request["mchid"],
        "out_trade_no": order.number,
        "trade_type": order.trade_type,
        "trade_state": order.state,
        "trade_state_desc": order.state,
        "amount": {"total": order.cents, "currency": "CNY", "payer_total": order.cents, "payer_currency": "CNY"},
    }
    if order.transaction_id is not None:
        message |= {"transaction_id": order.transaction_id, "success_time": order.success_time, "bank_type": "OTHERS"}
        message["payer"] = order.request.get("payer") or {"openid": "o-payer-who-scanned"}
    return message


def refund_of(order: LocalOrder, *, in_notice: bool) -> dict[str, Any]:
    """A refund in WeChat Pay's format; notices and answers name the state field differently."""
    refund = order.refund
    assert refund is not None
    return {
        "mchid": order.request["mchid"],
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

"""Plans, subscriptions and orders, for programs with an event loop: ``client.plans``, ``client.subscriptions`` and
``client.payments``."""

from __future__ import annotations  # a verb is called list

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headrace.client.model import Answer
from headrace.client.verbs import Verbs, given, part


@dataclass(frozen=True, slots=True)
class Plan(Answer):
    """What can be bought."""

    id: str
    name: str
    price_cents: int
    currency: str
    monthly_quota: int
    features: Sequence[Mapping[str, Any]]
    is_active: bool
    sort_order: int
    version: int


@dataclass(frozen=True, slots=True)
class Subscription(Answer):
    """A subscription as it was when the server answered."""

    id: str
    user_id: str
    plan_id: str
    status: str
    started_at: datetime | None
    effective_at: datetime | None
    expire_at: datetime | None
    canceled_at: datetime | None
    auto_renew: bool
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Order(Answer):
    """An order: ``code_url`` is what the QR code says, ``jsapi`` what a mini-program pays with."""

    id: str
    user_id: str
    plan_id: str
    subscription_id: str
    kind: str
    method: str
    status: str
    description: str
    amount_cents: int
    currency: str
    units: int
    code_url: str | None
    jsapi: Mapping[str, str] | None
    transaction_id: str | None
    refund_id: str | None
    entitlement_id: str | None
    problem: str | None
    expires_at: datetime
    paid_at: datetime | None
    refunded_at: datetime | None
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Ordered:
    """A subscription and the order that waits to be paid for it."""

    subscription: Subscription
    order: Order

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Ordered:
        return cls(Subscription.of(data["subscription"]), Order.of(data["order"]))


class Plans(Verbs):
    """What can be bought."""

    async def list(self) -> Sequence[Plan]:
        """The plans on offer, in the order of the price list."""
        return [Plan.of(plan) for plan in (await self._get("/v1/plans"))["items"]]


class Subscriptions(Verbs):
    """Who has which plan, until when."""

    async def create(
        self, plan: str, *, method: str = "NATIVE", auto_renew: bool = True, key: str | None = None
    ) -> Ordered:
        """Order a plan, by id or name; the answer says how to pay. Sent again, it is one order."""
        body = {"plan": plan, "method": method, "auto_renew": auto_renew}
        return Ordered.of(await self._create("/v1/subscriptions", body, key))

    async def renew(self, subscription_id: str, *, method: str = "NATIVE", key: str | None = None) -> Ordered:
        """Order the next month."""
        path = f"{_subscription(subscription_id)}/renew"
        return Ordered.of(await self._create(path, {"method": method}, key))

    async def get(self, subscription_id: str) -> Subscription:
        """One subscription."""
        return Subscription.of(await self._get(_subscription(subscription_id)))

    async def cancel(self, subscription_id: str, *, version: int | None = None) -> Subscription:
        """It ends with its period; one that is not paid for ends at once."""
        path = f"{_subscription(subscription_id)}/cancel"
        return Subscription.of(await self._change(path, version, safe=True))

    async def resume(self, subscription_id: str, *, version: int | None = None) -> Subscription:
        """Take a cancellation back while its period runs."""
        path = f"{_subscription(subscription_id)}/resume"
        return Subscription.of(await self._change(path, version, safe=True))

    async def list(
        self, *, status: str | None = None, user_id: str | None = None
    ) -> AsyncGenerator[Subscription, None]:
        """Your subscriptions, newest first. Administrators name somebody else, or ``*``."""
        async for each in self._pages("/v1/subscriptions", {"status": status, "user_id": user_id}):
            yield Subscription.of(each)


class Payments(Verbs):
    """Orders, and what was paid of them."""

    async def get(self, order_id: str) -> Order:
        """One order."""
        return Order.of(await self._get(_order(order_id)))

    async def check(self, order_id: str) -> Order:
        """Ask WeChat Pay now what became of it."""
        return Order.of(await self._change(f"{_order(order_id)}/check", None, safe=True))

    async def refund(self, order_id: str, *, reason: str) -> Order:
        """Give all of it back. For administrators; sent again, it is one refund."""
        path = f"/v1/admin/payments/{part(order_id)}/refund"
        return Order.of(await self._change(path, None, safe=True, body=given({"reason": reason})))

    async def resolve(self, order_id: str, *, reason: str) -> Order:
        """Say that its ``problem`` was looked at. For administrators."""
        path = f"/v1/admin/payments/{part(order_id)}/resolve"
        return Order.of(await self._change(path, None, safe=True, body=given({"reason": reason})))

    async def list(self, *, status: str | None = None, user_id: str | None = None) -> AsyncGenerator[Order, None]:
        """Your orders, newest first. Administrators name somebody else, or ``*``."""
        async for each in self._pages("/v1/payments", {"status": status, "user_id": user_id}):
            yield Order.of(each)


def _subscription(subscription_id: str) -> str:
    return f"/v1/subscriptions/{part(subscription_id)}"


def _order(order_id: str) -> str:
    return f"/v1/payments/{part(order_id)}"

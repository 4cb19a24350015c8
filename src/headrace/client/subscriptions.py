"""Plans, subscriptions and orders, for programs with an event loop: ``client.plans``, ``client.subscriptions`` and
``client.payments``."""

from __future__ import annotations  # a method is named list

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headrace.client.model import Answer
from headrace.client.verbs import Verbs, given, part


@dataclass(frozen=True, slots=True)
class Plan(Answer):
    """Plans for sale."""

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
    """A subscription at the time of the answer."""

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
    """An order: ``code_url`` is the content of the QR code, ``jsapi`` the parameters for a mini-program."""

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
    """A subscription and its unpaid order."""

    subscription: Subscription
    order: Order

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Ordered:
        return cls(Subscription.of(data["subscription"]), Order.of(data["order"]))


class Plans(Verbs):
    """Plans for sale."""

    async def list(self) -> Sequence[Plan]:
        """The plans on offer, in the order of the price list."""
        return [Plan.of(plan) for plan in (await self._get("/v1/plans"))["items"]]


class Subscriptions(Verbs):
    """Subscriptions."""

    async def create(
        self, plan: str, *, method: str = "NATIVE", auto_renew: bool = True, key: str | None = None
    ) -> Ordered:
        """Order a plan, by id or name; the answer says how to pay. Retries create one order."""
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
        """Cancel it: it ends with its period; an unpaid one ends at once."""
        path = f"{_subscription(subscription_id)}/cancel"
        return Subscription.of(await self._change(path, version, safe=True))

    async def resume(self, subscription_id: str, *, version: int | None = None) -> Subscription:
        """Undo a cancellation while the period runs."""
        path = f"{_subscription(subscription_id)}/resume"
        return Subscription.of(await self._change(path, version, safe=True))

    async def list(
        self, *, status: str | None = None, user_id: str | None = None
    ) -> AsyncGenerator[Subscription, None]:
        """Your subscriptions, newest first. Administrators may name a user, or ``*``."""
        async for each in self._pages("/v1/subscriptions", {"status": status, "user_id": user_id}):
            yield Subscription.of(each)


class Payments(Verbs):
    """Orders and payments."""

    async def get(self, order_id: str) -> Order:
        """One order."""
        return Order.of(await self._get(_order(order_id)))

    async def check(self, order_id: str) -> Order:
        """Query WeChat Pay about the order now."""
        return Order.of(await self._change(f"{_order(order_id)}/check", None, safe=True))

    async def refund(self, order_id: str, *, reason: str) -> Order:
        """Refund the whole payment. For administrators; retries make one refund."""
        path = f"/v1/admin/payments/{part(order_id)}/refund"
        return Order.of(await self._change(path, None, safe=True, body=given({"reason": reason})))

    async def resolve(self, order_id: str, *, reason: str) -> Order:
        """Mark its ``problem`` as resolved. For administrators."""
        path = f"/v1/admin/payments/{part(order_id)}/resolve"
        return Order.of(await self._change(path, None, safe=True, body=given({"reason": reason})))

    async def list(self, *, status: str | None = None, user_id: str | None = None) -> AsyncGenerator[Order, None]:
        """Your orders, newest first. Administrators may name a user, or ``*``."""
        async for each in self._pages("/v1/payments", {"status": status, "user_id": user_id}):
            yield Order.of(each)


def _subscription(subscription_id: str) -> str:
    return f"/v1/subscriptions/{part(subscription_id)}"


def _order(order_id: str) -> str:
    return f"/v1/payments/{part(order_id)}"

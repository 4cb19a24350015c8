"""Subscriptions and orders, for programs with an event loop: ``client.subscriptions`` and ``client.payments``."""

from __future__ import annotations  # a method is named list

from collections.abc import AsyncGenerator

from headrace.client.generated.answers import Order, Ordered, Subscription
from headrace.client.verbs import Verbs, given, part


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

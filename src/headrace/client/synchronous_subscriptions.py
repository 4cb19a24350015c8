"""The verbs of plans, subscriptions and orders for programs without an event loop; they are described at their
twins."""

from __future__ import annotations  # a verb is called list

from collections.abc import Iterator, Sequence

from headrace.client.subscriptions import Order, Ordered, Payments, Plan, Plans, Subscription, Subscriptions
from headrace.client.synchronous_schedules import Loop


class SyncPlans:
    def __init__(self, loop: Loop, plans: Plans) -> None:
        self._loop = loop
        self._plans = plans

    def list(self) -> Sequence[Plan]:
        return self._loop.run(self._plans.list())


class SyncSubscriptions:
    def __init__(self, loop: Loop, subscriptions: Subscriptions) -> None:
        self._loop = loop
        self._subscriptions = subscriptions

    def create(self, plan: str, *, method: str = "NATIVE", auto_renew: bool = True, key: str | None = None) -> Ordered:
        return self._loop.run(self._subscriptions.create(plan, method=method, auto_renew=auto_renew, key=key))

    def renew(self, subscription_id: str, *, method: str = "NATIVE", key: str | None = None) -> Ordered:
        return self._loop.run(self._subscriptions.renew(subscription_id, method=method, key=key))

    def get(self, subscription_id: str) -> Subscription:
        return self._loop.run(self._subscriptions.get(subscription_id))

    def cancel(self, subscription_id: str, *, version: int | None = None) -> Subscription:
        return self._loop.run(self._subscriptions.cancel(subscription_id, version=version))

    def resume(self, subscription_id: str, *, version: int | None = None) -> Subscription:
        return self._loop.run(self._subscriptions.resume(subscription_id, version=version))

    def list(self, *, status: str | None = None, user_id: str | None = None) -> Iterator[Subscription]:
        return self._loop.iterate(self._subscriptions.list(status=status, user_id=user_id))


class SyncPayments:
    def __init__(self, loop: Loop, payments: Payments) -> None:
        self._loop = loop
        self._payments = payments

    def get(self, order_id: str) -> Order:
        return self._loop.run(self._payments.get(order_id))

    def check(self, order_id: str) -> Order:
        return self._loop.run(self._payments.check(order_id))

    def refund(self, order_id: str, *, reason: str) -> Order:
        return self._loop.run(self._payments.refund(order_id, reason=reason))

    def resolve(self, order_id: str, *, reason: str) -> Order:
        return self._loop.run(self._payments.resolve(order_id, reason=reason))

    def list(self, *, status: str | None = None, user_id: str | None = None) -> Iterator[Order]:
        return self._loop.iterate(self._payments.list(status=status, user_id=user_id))

"""Buying from Python. W-11."""

import asyncio

from headrace.client import Client, SyncClient
from headrace.database import Database
from tests.billing.shop import Shop, open_shop
from tests.client.conftest import served

SCOPES = "billing:read,billing:write"


async def test_a_plan_is_bought_renewed_and_canceled(db: Database) -> None:
    async with open_shop(db) as shop, served(shop.app) as url:
        async with Client(url, f"{shop.user_id},{SCOPES}") as client:
            assert [plan.name for plan in await client.plans.list()] == ["Free", "Pro", "Team"]
            ordered = await client.subscriptions.create("Pro")
            assert (ordered.subscription.status, ordered.order.amount_cents) == ("PENDING", 2900)
            shop.local.pay(ordered.order.id)
            assert (await client.payments.check(ordered.order.id)).paid_at is not None
            subscription = await client.subscriptions.get(ordered.subscription.id)
            assert (subscription.status, subscription.expire_at is not None) == ("ACTIVE", True)
            renewal = await client.subscriptions.renew(subscription.id)
            assert renewal.order.kind == "RENEWAL"
            canceled = await client.subscriptions.cancel(subscription.id, version=subscription.version)
            assert canceled.canceled_at is not None
            assert (await client.subscriptions.resume(subscription.id)).canceled_at is None
            assert [each.id async for each in client.subscriptions.list()] == [subscription.id]
            assert {each.kind async for each in client.payments.list()} == {"PURCHASE", "RENEWAL"}
        await asyncio.to_thread(_synchronously, shop, url)


def _synchronously(shop: Shop, url: str) -> None:
    with SyncClient(url, f"{shop.user_id},{SCOPES}") as client:
        (plan, *_) = [plan for plan in client.plans.list() if plan.name == "Team"]
        ordered = client.subscriptions.create(plan.id)
        assert client.payments.get(ordered.order.id).status == "PENDING"
        assert client.subscriptions.cancel(ordered.subscription.id).status == "CANCELED"
        assert len(list(client.subscriptions.list(status="CANCELED"))) == 1

"""The routes of buying beside a WeChat Pay on this machine, a buyer, an administrator, and plans to buy."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from fastapi import FastAPI

from headrace import ids
from headrace.billing.payments.config import OrderConfig
from headrace.billing.payments.local.book import LocalOrder
from headrace.billing.payments.local.server import LocalPayments, local_payments
from headrace.billing.payments.service import Payments, open_payments
from headrace.billing.routes import create_router
from headrace.database import Database, Row
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand
from tests.web.world import merchant_keys

NOTIFY = "/v1/payments/wechat/notify"
PRO = {"name": "Pro", "price_cents": 2900, "monthly_quota": 500}
TEAM = {"name": "Team", "price_cents": 9900, "monthly_quota": 3000}
ADMIN = {"Authorization": f"Bearer {ids.SYSTEM_USER},ADMIN"}
INSERT_USER = "INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, $2, '!')"


@dataclass
class Shop:
    db: Database
    app: FastAPI
    local: LocalPayments
    payments: Payments  # as the schedules have it
    client: httpx2.AsyncClient = field(init=False)  # the buyer
    user_id: str = ""
    plans: dict[str, str] = field(default_factory=dict)

    @property
    def boss(self) -> httpx2.AsyncClient:
        """An administrator."""
        return self.calling(ADMIN)

    async def manage(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        """What an administrator does, and what succeeds."""
        async with self.boss as client:
            reply = await client.request(method, path, json=body)
        assert reply.is_success, reply.text
        return reply

    async def newcomer(self) -> tuple[str, dict[str, str]]:
        """Somebody else, and what they send along."""
        user_id = ids.new("u")
        await self.db.fetch_alone(INSERT_USER, user_id, user_id)
        return user_id, {"Authorization": f"Bearer {user_id}"}

    def calling(self, headers: dict[str, str]) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(self.app, client=("192.0.2.8", 4711))
        return httpx2.AsyncClient(transport=transport, base_url="http://headrace.test", headers=headers)

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        return await self.client.request(method, path, json=body, headers=headers)

    async def order(self, plan: str = "Pro", **wish: Any) -> dict[str, Any]:
        """Subscribe; gives the answer."""
        reply = await self.call("POST", "/v1/subscriptions", {"plan": plan, **wish})
        assert reply.status_code == 201, reply.text
        answer: dict[str, Any] = reply.json()
        return answer

    async def notify(self, body: bytes, headers: dict[str, str]) -> httpx2.Response:
        """What WeChat Pay sends, without a credential of ours."""
        transport = httpx2.ASGITransport(self.app, client=("192.0.2.99", 443))
        async with httpx2.AsyncClient(transport=transport, base_url="http://headrace.test") as stranger:
            return await stranger.post(NOTIFY, content=body, headers=headers)

    async def tell_paid(self, order: LocalOrder) -> httpx2.Response:
        return await self.notify(*self.local.notice("TRANSACTION.SUCCESS", order))

    async def tell_refunded(self, order: LocalOrder) -> httpx2.Response:
        return await self.notify(*self.local.notice("REFUND.SUCCESS", order))

    async def buy(self, plan: str = "Pro", **wish: Any) -> dict[str, Any]:
        """Subscribe, pay, and let WeChat Pay tell of it; gives the answer to the order."""
        answer = await self.order(plan, **wish)
        assert (await self.tell_paid(self.local.pay(answer["order"]["id"]))).status_code == 204
        return answer

    async def one(self, sql: str, *args: object) -> Row:
        (row,) = await self.db.fetch_alone(sql, *args)
        return row

    async def status_of(self, answer: dict[str, Any]) -> tuple[str, str]:
        """Of the subscription and of the order."""
        row = await self.one(
            "SELECT s.status AS s, o.status AS o FROM headrace.payment_orders AS o"
            " JOIN headrace.subscriptions AS s ON s.id = o.subscription_id WHERE o.id = $1",
            answer["order"]["id"],
        )
        return row["s"], row["o"]

    async def grants(self) -> list[Row]:
        """What was bought, with the ledger's row about it."""
        return await self.db.fetch_alone(
            "SELECT e.*, l.consume_unit, l.idempotency_key FROM headrace.entitlements AS e"
            " LEFT JOIN headrace.usage_ledger AS l ON l.entitlement_id = e.id"
            " WHERE e.user_id = $1 AND e.subscription_id IS NOT NULL ORDER BY e.period_start, e.id",
            self.user_id,
        )

    async def events(self, subscription_id: str) -> list[str]:
        rows = await self.db.fetch_alone(
            "SELECT event_type FROM headrace.outbox_events WHERE aggregate_id = $1 ORDER BY id", subscription_id
        )
        return [row["event_type"].removeprefix("subscription.") for row in rows]


@asynccontextmanager
async def open_shop(db: Database, *, by_public_key: bool = True) -> AsyncIterator[Shop]:
    async with local_payments(merchant_keys()) as local:
        local.loses_notices = True  # tests send them themselves
        config = local.config(f"http://headrace.test{NOTIFY}", by_public_key=by_public_key)
        async with open_payments(config, OrderConfig()) as payments:
            app = create_app(stand.services(db), WebConfig(), routers=[create_router(payments)])
            shop = Shop(db, app, local, payments)
            shop.user_id, headers = await shop.newcomer()
            for plan in (PRO, TEAM):
                shop.plans[str(plan["name"])] = (await shop.manage("POST", "/v1/admin/plans", plan)).json()["id"]
            async with shop.calling(headers) as shop.client:
                yield shop

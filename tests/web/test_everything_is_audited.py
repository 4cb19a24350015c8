"""A-04: every route that changes something leaves an event. A new one that nobody has written down here fails."""

import asyncio
import base64
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asyncpg
import httpx2
from fastapi import FastAPI

from headrace import ids, settings
from headrace.accounts import tokens, totp
from headrace.admin.bulk.execution import add_handlers as add_bulk
from headrace.admin.maintenance import QUEUE
from headrace.assembly.api import application
from headrace.assembly.deployment import Deployment
from headrace.assembly.followers import followers
from headrace.assembly.tasks import open_tasks
from headrace.assets.results import ResultFiles
from headrace.billing.payments.local.keys import LocalKeys, make_keys
from headrace.billing.payments.local.server import LocalPayments, local_payments
from headrace.database import Database, DatabaseConfig
from headrace.outbox.catalogue import faults
from headrace.removal.order import RemovalOrder
from headrace.removal.service.task_types import removal_types
from headrace.storage import Storage, StorageConfig
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker
from tests.accounts.test_wechat import FakeWeChat
from tests.assets.stand import png
from tests.billing.stand import grant_alone
from tests.edge import stand
from tests.open_types import OpenRegistry

PASSWORD = "correct horse battery"
RISK = {
    "category": "COST",
    "severity": "HIGH",
    "trigger_condition": "the bill doubles",
    "mitigation_plan": "watch it",
    "owner": "ada",
}
CHANGING = {"POST", "PUT", "PATCH", "DELETE"}


@dataclass
class Sent:
    """A request that will succeed: the values of the path's names, the body, whose session."""

    path: dict[str, str] = field(default_factory=dict)
    body: Any = None
    token: str | None = None
    content: bytes | None = None  # a body that is signed as it is
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] | None = None  # of a route that only reads


class World:
    """The whole API, an administrator, and the means to prepare what a request needs."""

    def __init__(self, client: httpx2.AsyncClient, db: Database, local: LocalPayments, files: Path) -> None:
        self.client = client
        self.db = db
        self.local = local  # stands in for WeChat Pay
        self.files = files  # the folder in which they are stored
        self._numbers = count()

    async def send(self, method: str, path: str, body: Any = None, *, token: str | None = None) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        reply = await self.client.request(method, path, headers=headers, **content)
        assert reply.is_success, f"{method} {path}: {reply.text}"
        return reply

    async def events(self) -> int:
        rows = await self.db.fetch_alone("SELECT count(*) FROM headrace.audit_events")
        return int(rows[0][0])

    async def user(self) -> dict[str, Any]:
        name = f"user-{next(self._numbers)}"
        made = (await self.send("POST", "/v1/admin/users", {"username": name, "password": PASSWORD})).json()
        found: dict[str, Any] = made["user"]
        return found

    async def session(self) -> tuple[str, dict[str, Any]]:
        """Somebody's token and what logging in said."""
        user = await self.user()
        reply = await self.send("POST", "/v1/auth/login", {"username": user["username"], "password": PASSWORD})
        return reply.json()["token"], user

    async def task(self) -> str:
        task_id: str = (await self.send("POST", "/v1/tasks", {"type": "anything"})).json()["id"]
        return task_id

    async def canceled_task(self) -> str:
        task_id = await self.task()
        await self.send("POST", f"/v1/tasks/{task_id}/cancel")
        return task_id

    async def schedule(self) -> str:
        body = {"name": f"schedule {next(self._numbers)}", "type": "anything", "interval": 3600}
        uid: str = (await self.send("POST", "/v1/schedules", body)).json()["id"]
        return uid

    async def plan(self) -> str:
        made = await self.send("POST", "/v1/admin/plans", {**PLAN, "name": f"plan {next(self._numbers)}"})
        plan_id: str = made.json()["id"]
        return plan_id

    async def order(self) -> dict[str, Any]:
        """A subscription and its order, which waits to be paid."""
        found: dict[str, Any] = (await self.send("POST", "/v1/subscriptions", {"plan": await self.plan()})).json()
        return found

    async def bought(self) -> dict[str, Any]:
        """The same, paid."""
        ordered = await self.order()
        self.local.pay(ordered["order"]["id"])
        await self.send("POST", f"/v1/payments/{ordered['order']['id']}/check")
        return ordered

    async def endpoint(self) -> str:
        body = {"name": "hook", "url": f"https://example.com/{next(self._numbers)}", "subscribed_events": ["task.*"]}
        endpoint_id: str = (await self.send("POST", "/v1/webhooks/endpoints", body)).json()["id"]
        return endpoint_id

    async def delivery(self) -> str:
        made = await self.send("POST", f"/v1/webhooks/endpoints/{await self.endpoint()}/test")
        delivery_id: str = made.json()["id"]
        return delivery_id

    async def notification(self) -> str:
        me = (await self.send("GET", "/v1/me")).json()["user"]["id"]
        rows = await self.db.fetch_alone(
            "INSERT INTO headrace.notifications (user_id, type, title, body) VALUES ($1, 'TASK_FAILED', 't', 'b') "
            "RETURNING id",
            me,
        )
        return str(rows[0]["id"])

    async def asset(self) -> str:
        """A file, each another one."""
        asset_id: str = (await self.send("POST", "/v1/assets", png(shade=next(self._numbers)))).json()["id"]
        return asset_id

    async def removal(self) -> str:
        """One that waits: nobody here has its type."""
        body = {"asset_ids": [await self.asset()], "rights": {"basis": "OWNER"}}
        task_id: str = (await self.send("POST", "/v1/removals", body)).json()["items"][0]["id"]
        return task_id

    async def removed(self) -> str:
        """A removal that succeeded, and was charged."""
        task_id = await self.removal()
        await self.worked(removal_types(_Remover(self.files)), task_id)
        return task_id

    async def upload(self) -> str:
        body = {"name": "cat.png", "size_bytes": len(png())}
        upload_id: str = (await self.send("POST", "/v1/uploads", body)).json()["id"]
        return upload_id

    async def whole_upload(self) -> str:
        """One that has all its parts."""
        upload_id = await self.upload()
        await self.send("PUT", f"/v1/uploads/{upload_id}/parts/1", png())
        return upload_id

    async def result(self) -> str:
        """A task that is over, with a file as its result."""
        task_id: str = (await self.send("POST", "/v1/tasks", {"type": "makes_a_file"})).json()["id"]
        await self.worked(self.makers, task_id)
        return task_id

    async def worked(self, types: Registry, task_id: str) -> None:
        """Let a worker with these types run until the task is over."""
        stop = asyncio.Event()
        config = WorkerConfig(poll_every=timedelta(milliseconds=20), scratch=self.files / "scratch")
        working = asyncio.create_task(Worker(self.db, types, followers(), config).run(stop))
        async with asyncio.timeout(60):
            done = "SELECT FROM headrace.tasks WHERE id = $1 AND status IN ('SUCCEEDED', 'FAILED')"
            while not await self.db.fetch_alone(done, task_id):
                await asyncio.sleep(0.02)
        stop.set()
        await working

    @property
    def makers(self) -> Registry:
        registry = OpenRegistry()

        @registry.task("makes_a_file", queue="makers", followers=("results",))  # others pause the usual one
        async def makes_a_file(context: TaskContext, payload: Any) -> Any:
            file, small, both = (self.files / f"{context.task_id}{ending}" for ending in (".png", ".webp", ".jpg"))
            for each in (file, small, both):
                each.write_bytes(b"cat")
            storage = ResultFiles(Storage(StorageConfig(f"file://{self.files}")))
            facts = {"name": "cat.png", "mime_type": "image/png"}
            made = await storage.store(context.task_id, context.user_id, file, preview=small, comparison=both, **facts)
            return made.as_json()

        return registry

    async def api_key(self) -> str:
        body = {"name": f"key {next(self._numbers)}", "scopes": ["tasks:read"]}
        key = (await self.send("POST", "/v1/api-keys", body)).json()
        key_id: str = key["id"]
        return key_id

    async def entitlement(self) -> str:
        user_id: str = (await self.send("GET", "/v1/me")).json()["user"]["id"]
        return await grant_alone(self.db, user_id, 10)


class _Remover:
    """Makes another result of every file."""

    def __init__(self, files: Path) -> None:
        self._files = files

    async def remove(self, context: TaskContext, _order: RemovalOrder) -> dict[str, Any]:
        path = self._files / f"{context.task_id}.png"
        path.write_text(context.task_id)
        storage = ResultFiles(Storage(StorageConfig(f"file://{self._files}")))
        made = await storage.store(context.task_id, context.user_id, path, name="clean.png", mime_type="image/png")
        return made.as_json()

    async def detect(self, _context: TaskContext, _order: RemovalOrder) -> dict[str, Any]:
        raise NotImplementedError


Recipe = Callable[[World], Awaitable[Sent]]
RECIPES: dict[str, Recipe] = {}


def recipe(*operations: str) -> Callable[[Recipe], Recipe]:
    """How to call this operation so that it changes something."""

    def note(prepare: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(operations, prepare))
        return prepare

    return note


@recipe("POST /v1/auth/register")
async def _(world: World) -> Sent:
    return Sent(body={"username": "newcomer", "password": PASSWORD})


@recipe("POST /v1/auth/login")
async def _(world: World) -> Sent:
    return Sent(body={"username": (await world.user())["username"], "password": PASSWORD})


@recipe("POST /v1/auth/wechat")
async def _(world: World) -> Sent:
    return Sent(body={"code": "from-the-mini-program"})


@recipe("POST /v1/auth/logout")
async def _(world: World) -> Sent:
    return Sent(token=(await world.session())[0])


@recipe("POST /v1/auth/password")
async def _(world: World) -> Sent:
    token, _ = await world.session()
    return Sent(body={"current_password": PASSWORD, "new_password": f"{PASSWORD} 2"}, token=token)


@recipe("PATCH /v1/me")
async def _(world: World) -> Sent:
    return Sent(body={"mobile": "+49 30 1234567"}, token=(await world.session())[0])


async def _link(world: World, purpose: str) -> str:
    """The token of a link that was sent by e-mail."""
    token = tokens.new(tokens.LINK)
    await world.db.fetch_alone(
        "INSERT INTO headrace.account_links (id, user_id, purpose, token_hash, email, expires_at) "
        "VALUES ($1, $2, $3, $4, 'ada@example.org', now() + interval '1 hour') RETURNING 1",
        ids.new("lnk"),
        (await world.user())["id"],
        purpose,
        tokens.digest(token),
    )
    return token


@recipe("POST /v1/auth/password/reset")
async def _(world: World) -> Sent:
    return Sent(body={"token": await _link(world, "PASSWORD_RESET"), "new_password": f"{PASSWORD} 2"})


@recipe("POST /v1/auth/email/confirm")
async def _(world: World) -> Sent:
    return Sent(body={"token": await _link(world, "EMAIL_CHANGE")})


@recipe("POST /v1/me/email")
async def _(world: World) -> Sent:
    return Sent(body={"email": "ada@example.org", "password": PASSWORD}, token=(await world.session())[0])


async def _first_code(world: World, token: str) -> dict[str, str]:
    made = (await world.send("POST", "/v1/me/second-factor", {"password": PASSWORD}, token=token)).json()
    return {"code": totp.code_of(base64.b32decode(made["secret"]), totp.step_of(time.time()))}


async def _second_factor(world: World) -> tuple[str, str, str]:
    """A session, its user's id, and a recovery code."""
    token, user = await world.session()
    on = await world.send("POST", "/v1/me/second-factor/enable", await _first_code(world, token), token=token)
    return token, user["id"], on.json()["recovery_codes"][0]


@recipe("POST /v1/me/second-factor")
async def _(world: World) -> Sent:
    return Sent(body={"password": PASSWORD}, token=(await world.session())[0])


@recipe("POST /v1/me/second-factor/enable")
async def _(world: World) -> Sent:
    token, _ = await world.session()
    return Sent(body=await _first_code(world, token), token=token)


@recipe("POST /v1/me/second-factor/disable", "POST /v1/me/second-factor/recovery-codes")
async def _(world: World) -> Sent:
    token, _, code = await _second_factor(world)
    return Sent(body={"password": PASSWORD, "code": code}, token=token)


@recipe("DELETE /v1/admin/users/{user_id}/second-factor")
async def _(world: World) -> Sent:
    return Sent({"user_id": (await _second_factor(world))[1]})


@recipe("DELETE /v1/sessions")
async def _(world: World) -> Sent:
    token, user = await world.session()
    await world.send("POST", "/v1/auth/login", {"username": user["username"], "password": PASSWORD})
    return Sent(token=token)


@recipe("DELETE /v1/sessions/{session_id}")
async def _(world: World) -> Sent:
    token, _ = await world.session()
    page = (await world.send("GET", "/v1/sessions", token=token)).json()
    return Sent({"session_id": page["items"][0]["id"]}, token=token)


@recipe("DELETE /v1/admin/users/{user_id}/sessions/{session_id}")
async def _(world: World) -> Sent:
    token, user = await world.session()
    page = (await world.send("GET", "/v1/sessions", token=token)).json()
    return Sent({"user_id": user["id"], "session_id": page["items"][0]["id"]})


@recipe("DELETE /v1/admin/users/{user_id}/api-keys/{api_key_id}")
async def _(world: World) -> Sent:
    me = (await world.send("GET", "/v1/me")).json()["user"]["id"]
    return Sent({"user_id": me, "api_key_id": await world.api_key()})


@recipe("POST /v1/api-keys")
async def _(world: World) -> Sent:
    return Sent(body={"name": "another", "scopes": ["tasks:read"]})


@recipe("DELETE /v1/api-keys/{api_key_id}")
async def _(world: World) -> Sent:
    return Sent({"api_key_id": await world.api_key()})


@recipe("POST /v1/admin/users")
async def _(world: World) -> Sent:
    return Sent(body={"username": "made-by-admin"})


@recipe("POST /v1/admin/users/{user_id}/suspend")
async def _(world: World) -> Sent:
    return Sent({"user_id": (await world.user())["id"]})


@recipe("POST /v1/admin/users/{user_id}/reinstate")
async def _(world: World) -> Sent:
    user_id = (await world.user())["id"]
    await world.send("POST", f"/v1/admin/users/{user_id}/suspend")
    return Sent({"user_id": user_id})


@recipe("POST /v1/admin/users/{user_id}/role")
async def _(world: World) -> Sent:
    return Sent({"user_id": (await world.user())["id"]}, {"role": "ADMIN"})


@recipe("POST /v1/admin/users/{user_id}/password")
async def _(world: World) -> Sent:
    return Sent({"user_id": (await world.user())["id"]}, {})


@recipe("POST /v1/tasks")
async def _(world: World) -> Sent:
    return Sent(body={"type": "anything"})


@recipe("POST /v1/tasks/batch")
async def _(world: World) -> Sent:
    return Sent(body={"tasks": [{"type": "anything"}, {"type": "anything"}]})


@recipe("POST /v1/tasks/{task_id}/cancel")
async def _(world: World) -> Sent:
    return Sent({"task_id": await world.task()})


@recipe("POST /v1/tasks/{task_id}/retry", "DELETE /v1/tasks/{task_id}")
async def _(world: World) -> Sent:
    return Sent({"task_id": await world.canceled_task()})


@recipe("POST /v1/queues/{name}/pause")
async def _(world: World) -> Sent:
    return Sent({"name": "default"})


@recipe("POST /v1/queues/{name}/resume")
async def _(world: World) -> Sent:
    await world.send("POST", "/v1/queues/paused/pause?create=true")
    return Sent({"name": "paused"})


@recipe("PUT /v1/queues/{name}/limit")
async def _(world: World) -> Sent:
    return Sent({"name": "default"}, {"max_running": 3})


@recipe("POST /v1/locks")
async def _(world: World) -> Sent:
    return Sent(body={"key": "free"})


@recipe("POST /v1/locks/release")
async def _(world: World) -> Sent:
    token = (await world.send("POST", "/v1/locks", {"key": "held"})).json()["token"]
    return Sent(body={"key": "held", "token": token})


@recipe("POST /v1/locks/force-release")
async def _(world: World) -> Sent:
    await world.send("POST", "/v1/locks", {"key": "taken"})
    return Sent(body={"key": "taken"})


@recipe("POST /v1/webhooks/endpoints")
async def _(world: World) -> Sent:
    return Sent(body={"name": "new", "url": "https://example.com/new", "subscribed_events": ["*"]})


@recipe(
    "PATCH /v1/webhooks/endpoints/{endpoint_id}",
    "DELETE /v1/webhooks/endpoints/{endpoint_id}",
    "POST /v1/webhooks/endpoints/{endpoint_id}/pause",
    "POST /v1/webhooks/endpoints/{endpoint_id}/test",
)
async def _(world: World) -> Sent:
    return Sent({"endpoint_id": await world.endpoint()}, {"name": "renamed"})


@recipe("POST /v1/webhooks/endpoints/{endpoint_id}/rotate-secret")
async def _(world: World) -> Sent:
    return Sent({"endpoint_id": await world.endpoint()}, {})


@recipe("POST /v1/webhooks/endpoints/{endpoint_id}/resume")
async def _(world: World) -> Sent:
    endpoint_id = await world.endpoint()
    await world.send("POST", f"/v1/webhooks/endpoints/{endpoint_id}/pause")
    return Sent({"endpoint_id": endpoint_id})


async def _failed_delivery(world: World) -> str:
    delivery_id = await world.delivery()
    await world.db.fetch_alone("DELETE FROM headrace.webhook_queue WHERE delivery_id = $1", delivery_id)
    await world.db.fetch_alone(
        "UPDATE headrace.webhook_deliveries SET status = 'DEAD', next_retry_at = NULL WHERE delivery_id = $1",
        delivery_id,
    )
    return delivery_id


@recipe("POST /v1/webhooks/endpoints/{endpoint_id}/resend")
async def _(world: World) -> Sent:
    delivery_id = await _failed_delivery(world)
    delivery = (await world.send("GET", f"/v1/webhooks/deliveries/{delivery_id}")).json()
    return Sent({"endpoint_id": delivery["endpoint_id"]}, {"since": "2020-01-01T00:00:00Z"})


@recipe("POST /v1/webhooks/deliveries/{delivery_id}/resend")
async def _(world: World) -> Sent:
    return Sent({"delivery_id": await _failed_delivery(world)})


@recipe("PUT /v1/notifications/language")
async def _(world: World) -> Sent:
    token, _ = await world.session()
    return Sent(body={"language": "zh"}, token=token)


@recipe("POST /v1/schedules")
async def _(world: World) -> Sent:
    return Sent(body={"name": "nightly", "type": "anything", "interval": 3600})


@recipe(
    "PATCH /v1/schedules/{schedule_id}",
    "DELETE /v1/schedules/{schedule_id}",
    "POST /v1/schedules/{schedule_id}/disable",
    "POST /v1/schedules/{schedule_id}/run",
)
async def _(world: World) -> Sent:
    return Sent({"schedule_id": await world.schedule()}, {"priority": 3})


@recipe("POST /v1/schedules/{schedule_id}/enable")
async def _(world: World) -> Sent:
    uid = await world.schedule()
    await world.send("POST", f"/v1/schedules/{uid}/disable")
    return Sent({"schedule_id": uid})


@recipe("POST /v1/executions/{execution_id}/cancel")
async def _(world: World) -> Sent:
    run = (await world.send("POST", f"/v1/schedules/{await world.schedule()}/run")).json()
    return Sent({"execution_id": run["id"]})


@recipe("POST /v1/me/deletion")
async def _(world: World) -> Sent:
    return Sent(body={"password": PASSWORD}, token=(await world.session())[0])


@recipe("POST /v1/admin/users/{user_id}/deletion")
async def _(world: World) -> Sent:
    return Sent({"user_id": (await world.user())["id"]}, {})


@recipe("DELETE /v1/admin/users/{user_id}/deletion")
async def _(world: World) -> Sent:
    user_id = (await world.user())["id"]
    await world.send("POST", f"/v1/admin/users/{user_id}/deletion", {})
    return Sent({"user_id": user_id})


@recipe("PUT /v1/admin/configs/{key}")
async def _(world: World) -> Sent:
    return Sent({"key": "features"}, {"value": {"beta": True}})


@recipe("DELETE /v1/admin/configs/{key}")
async def _(world: World) -> Sent:
    await world.send("PUT", "/v1/admin/configs/contact", {"value": {}})
    return Sent({"key": "contact"})


@recipe("POST /v1/admin/entitlements/{entitlement_id}/adjust")
async def _(world: World) -> Sent:
    return Sent({"entitlement_id": await world.entitlement()}, {"units": 5, "reason": "the outage of Monday"})


@recipe("POST /v1/tasks/bulk")
async def _(world: World) -> Sent:
    return Sent(body={"action": "cancel", "filter": {"ids": [await world.task()]}, "expected": 1})


@recipe("POST /v1/schedules/bulk")
async def _(world: World) -> Sent:
    return Sent(body={"action": "disable", "filter": {"ids": [await world.schedule()]}, "expected": 1})


@recipe("PUT /v1/me/views")
async def _(world: World) -> Sent:
    view = {"name": "what failed", "path": "/operators/tasks?status=FAILED"}
    return Sent(body={"views": [view]}, token=(await world.session())[0])


@recipe("POST /v1/admin/audit/verify")
async def _(world: World) -> Sent:
    return Sent(body={})


@recipe("POST /v1/admin/ledger/verify")
async def _(world: World) -> Sent:
    return Sent()


@recipe("POST /v1/admin/risks")
async def _(world: World) -> Sent:
    return Sent(body=RISK)


@recipe("PATCH /v1/admin/risks/{risk_id}")
async def _(world: World) -> Sent:
    risk = (await world.send("POST", "/v1/admin/risks", RISK)).json()
    return Sent({"risk_id": risk["risk_id"]}, {"owner": "somebody else"})


@recipe("DELETE /v1/admin/risks/{risk_id}")
async def _(world: World) -> Sent:
    risk = (await world.send("POST", "/v1/admin/risks", RISK)).json()
    return Sent({"risk_id": risk["risk_id"]})


PLAN = {"name": "Pro", "price_cents": 2900, "monthly_quota": 500}


@recipe("POST /v1/admin/plans")
async def _(world: World) -> Sent:
    return Sent(body=PLAN)


@recipe("PATCH /v1/admin/plans/{plan_id}", "DELETE /v1/admin/plans/{plan_id}")
async def _(world: World) -> Sent:
    return Sent({"plan_id": await world.plan()}, {"price_cents": 1900})


@recipe("POST /v1/subscriptions")
async def _(world: World) -> Sent:
    return Sent(body={"plan": await world.plan()})


@recipe("POST /v1/subscriptions/{subscription_id}/cancel")
async def _(world: World) -> Sent:
    return Sent({"subscription_id": (await world.order())["subscription"]["id"]})


@recipe("POST /v1/subscriptions/{subscription_id}/renew")
async def _(world: World) -> Sent:
    return Sent({"subscription_id": (await world.bought())["subscription"]["id"]}, {})


@recipe("POST /v1/subscriptions/{subscription_id}/resume")
async def _(world: World) -> Sent:
    subscription_id = (await world.bought())["subscription"]["id"]
    await world.send("POST", f"/v1/subscriptions/{subscription_id}/cancel")
    return Sent({"subscription_id": subscription_id})


@recipe("POST /v1/payments/{order_id}/check")
async def _(world: World) -> Sent:
    order_id = (await world.order())["order"]["id"]
    world.local.pay(order_id)
    return Sent({"order_id": order_id})


@recipe("POST /v1/payments/wechat/notify")
async def _(world: World) -> Sent:
    paid = world.local.pay((await world.order())["order"]["id"])
    body, headers = world.local.notice("TRANSACTION.SUCCESS", paid)
    return Sent(content=body, headers=headers)


@recipe("POST /v1/admin/payments/{order_id}/refund")
async def _(world: World) -> Sent:
    return Sent({"order_id": (await world.bought())["order"]["id"]}, {"reason": "as agreed"})


@recipe("POST /v1/admin/payments/{order_id}/resolve")
async def _(world: World) -> Sent:
    order_id = (await world.order())["order"]["id"]
    await world.db.fetch_alone("UPDATE headrace.payment_orders SET problem = 'amount_mismatch' WHERE id = $1", order_id)
    return Sent({"order_id": order_id}, {"reason": "paid back by hand"})


DEAD_EVENT = """
INSERT INTO headrace.outbox_events
  (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json, status)
VALUES ($1, 'account.deleted', 1, 'account', 'u_1', '{}', 'DEAD')
"""

TOLD = "SELECT * FROM headrace.outbox_events WHERE payload_json <> '{}'"  # but for those of the recipe below


@recipe("POST /v1/admin/outbox/events/{outbox_event_id}/revive", "POST /v1/admin/outbox/revive")
async def _(world: World) -> Sent:
    event_id = ids.new("evt")
    await world.db.fetch_alone(DEAD_EVENT, event_id)
    return Sent({"outbox_event_id": event_id}, {})


@recipe("POST /v1/assets")
async def _(world: World) -> Sent:
    return Sent(body=png(shade=next(world._numbers)))


@recipe("POST /v1/assets/{asset_id}/links")
async def _(world: World) -> Sent:
    return Sent({"asset_id": await world.asset()}, {"expires_in": 60})


@recipe("DELETE /v1/assets/{asset_id}")
async def _(world: World) -> Sent:
    return Sent({"asset_id": await world.asset()})


@recipe("POST /v1/removals")
async def _(world: World) -> Sent:
    return Sent(body={"asset_ids": [await world.asset()], "rights": {"basis": "OWNER"}})


@recipe("POST /v1/removals/{task_id}/return")
async def _(world: World) -> Sent:
    return Sent({"task_id": await world.removed()})


@recipe("POST /v1/assets/{asset_id}/detect")
async def _(world: World) -> Sent:
    return Sent({"asset_id": await world.asset()}, {})


@recipe("POST /v1/uploads/{upload_id}/complete")
async def _(world: World) -> Sent:
    return Sent({"upload_id": await world.whole_upload()})


@recipe("POST /v1/tasks/{task_id}/result/links")
async def _(world: World) -> Sent:
    return Sent({"task_id": await world.result()}, {})


# Operations that change nothing that anybody could want to know of, each with the reason.
@recipe("POST /v1/admin/partitions")
async def _(world: World) -> Sent:
    owner = await asyncpg.connect(world.db.config.url.partition("?")[0])
    await owner.execute(f"DROP TABLE headrace.audit_events{datetime.now(UTC) + timedelta(days=32):_y%Ym%m}")
    await owner.close()
    return Sent()


NOT_CHANGES: dict[str, str] = {
    "POST /v1/auth/password/forgot": "answered before anything is looked up: tests/accounts/test_recovery.py",
    "POST /v1/uploads": "nothing is a file before it is complete, and that is told",
    "PUT /v1/uploads/{upload_id}/parts/{number}": "a part of what is not a file yet",
    "POST /v1/uploads/{upload_id}/links": "the same; only the storage takes these",
    "DELETE /v1/uploads/{upload_id}": "it was no file",
    "POST /v1/removals/quote": "asks what an order would cost",
    "POST /v1/schedules/preview": "asks when a rhythm would be due",
    "POST /v1/notifications/{notification_id}/read": "what somebody has read is nobody else's business",
    "POST /v1/notifications/read-all": "the same",
    "POST /v1/locks/renew": "the lock is held as before; its history has its end",
}


@asynccontextmanager
async def whole_api(database_url: str, **choices: Any) -> AsyncIterator[tuple[World, FastAPI]]:
    """The API as the command line serves it, with every router and these settings, and an administrator before it."""
    async with local_payments(merchant_keys()) as local:
        local.loses_notices = True  # tests send them themselves
        with TemporaryDirectory() as folder:
            async with _served(database_url, local, folder, **choices) as served:
                yield served


@cache
def merchant_keys() -> LocalKeys:
    """One set for a test process: making one takes a good part of a second."""
    return make_keys()


def merchant(local: LocalPayments, folder: str, *, by_public_key: bool = True) -> dict[str, Any]:
    """The settings of a merchant of the WeChat Pay on this machine."""
    keys = local.keys
    (private := Path(folder) / "merchant.pem").write_text(keys.merchant_key)
    (public := Path(folder) / "platform.pem").write_text(keys.platform_public_key)
    checked_by = {"wechatpay_public_key_id": keys.public_key_id, "wechatpay_public_key_file": public}
    return {
        "wechatpay_mch_id": keys.mch_id,
        "wechatpay_app_id": keys.app_id,
        "wechatpay_cert_serial": keys.merchant_serial,
        "wechatpay_private_key_file": private,
        "wechatpay_api_v3_key": keys.api_v3_key,
        "wechatpay_notify_url": "http://headrace.test/v1/payments/wechat/notify",
        "wechatpay_base_url": local.url,
        **(checked_by if by_public_key else {}),
    }


@asynccontextmanager
async def _served(
    database_url: str, local: LocalPayments, folder: str, **choices: Any
) -> AsyncIterator[tuple[World, FastAPI]]:
    wechat = FakeWeChat()
    server = await asyncio.start_server(wechat.serve, "127.0.0.1", 0)
    chosen = settings.load(
        argon2_time_cost=1,
        argon2_memory="64KiB",
        argon2_parallelism=1,
        registration="open",
        wechat_app_id="app",
        files_url=tempfile.mkdtemp(prefix="headrace-files-"),
        wechat_app_secret="secret",
        wechat_base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",
        **{"api_rate_burst": 100_000, **merchant(local, folder), **choices},
    )
    config = DatabaseConfig(database_url, role="test")
    files = Path(str(chosen.files_url))
    place = Deployment(config, config, embedded=False)
    async with server, application(chosen, place, stand.SECRET) as app, await Database.connect(config) as db:
        registry = OpenRegistry()

        @registry.task("anything")
        async def anything(context: TaskContext, payload: Any) -> None: ...

        add_bulk(registry, db, lambda: open_tasks(chosen), queue=QUEUE)
        async with db.transaction() as tx:
            await declare_types(tx, registry)
        async with stand.client(app) as client:
            world = World(client, db, local, files)
            async with db.transaction() as tx:
                await declare_types(tx, world.makers)
            await world.send("POST", "/v1/auth/register", {"username": "boss", "password": PASSWORD})
            async with db.transaction() as tx:
                await tx.execute("UPDATE headrace.users SET role = 'ADMIN' WHERE username = 'boss'")
            reply = await world.send("POST", "/v1/auth/login", {"username": "boss", "password": PASSWORD})
            client.headers["Authorization"] = f"Bearer {reply.json()['token']}"
            try:
                yield world, app
            finally:
                shutil.rmtree(files, ignore_errors=True)  # a preview may still be written


def changing_operations(app: FastAPI) -> list[str]:
    paths = app.openapi()["paths"]
    return [f"{method.upper()} {path}" for path in paths for method in paths[path] if method.upper() in CHANGING]


async def test_every_route_that_changes_something_leaves_an_event(database_url: str) -> None:
    async with whole_api(database_url) as (world, app):
        operations = changing_operations(app)
        unknown = set(operations) - RECIPES.keys() - NOT_CHANGES.keys()
        assert not unknown, f"write down here how to call {unknown}, so that it is seen to be audited"
        assert not (RECIPES.keys() | NOT_CHANGES.keys()) - set(operations), "these are gone"
        silent = []
        for operation in operations:
            if operation in NOT_CHANGES:
                continue
            method, _, path = operation.partition(" ")
            sent = await RECIPES[operation](world)
            before = await world.events()
            if sent.content is None:
                await world.send(method, path.format(**sent.path), sent.body, token=sent.token)
            else:
                reply = await world.client.request(method, path, content=sent.content, headers=sent.headers)
                assert reply.is_success, reply.text
            if await world.events() == before:
                silent.append(operation)
        assert not silent, "these left no event"
        await check_outbox(world)


async def check_outbox(world: World) -> None:
    """What all of them have told fits the catalogue, and is told of somebody."""
    rows = await world.db.fetch_alone(TOLD)
    assert {row["event_type"].partition(".")[0] for row in rows} >= {"asset", "subscription"}
    assert [(row["event_type"], row["payload_json"]) for row in rows if row["user_id"] is None] == []
    wrong = [faults(row["event_type"], row["event_version"], row["payload_json"]) for row in rows]
    assert [each for each in wrong if each] == []

"""The API as the command line serves it, with an administrator before it, and what its routes need."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from fastapi import FastAPI

from headrace import settings
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
PLAN = {"name": "Pro", "price_cents": 2900, "monthly_quota": 500}


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

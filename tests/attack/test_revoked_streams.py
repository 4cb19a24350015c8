"""Whoever was shut out is not shown any more, also on what they opened before."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from headrace.access import Caller, Credentials, Role
from headrace.accounts import administration, registration, service
from headrace.accounts import routes as account_routes
from headrace.accounts.config import AccountsConfig, PasswordConfig
from headrace.accounts.service import Accounts
from headrace.admin.audit import routes as audit_routes
from headrace.admin.changes import routes as change_routes
from headrace.admin.changes.live import ChangesConfig, open_changes
from headrace.audit import ANONYMOUS, Action, ActorType, Resource, ResourceType, Who
from headrace.audit import record as record_event
from headrace.database import Database
from headrace.database_errors import DatabaseUnavailable
from headrace.errors import Unauthenticated
from headrace.tasks import live
from headrace.tasks.catalog import RegistryCatalog
from headrace.tasks.context import TaskContext
from headrace.tasks.live import Event, Kind, WatchConfig
from headrace.tasks.routes import create_router
from headrace.tasks.service import Tasks
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand
from tests.tasks.conftest import Bench

CHEAP = AccountsConfig(
    registration_open=True, passwords=PasswordConfig(time_cost=1, memory_kib=8, parallelism=1, at_once=2)
)
PASSWORD = "correct horse battery"
QUICK = WatchConfig(every=timedelta(milliseconds=20), heartbeat=timedelta(milliseconds=300))
OPERATOR = Who(ANONYMOUS, ActorType.USER)


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Bench:
    made = Bench(db, tmp_path)

    @made.registry.task("chatter")
    async def chatter(context: TaskContext, payload: Any) -> None:
        while True:  # there is always news: a heartbeat is never due
            await context.log("something secret")
            await asyncio.sleep(0.02)

    return made


@dataclass
class Site:
    bench: Bench
    accounts: Accounts
    url: str

    def client(self, token: str | None = None) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=30)

    async def register(self, name: str, role: Role = Role.USER) -> str:
        new = await registration.prepare(self.accounts, username=name, password=PASSWORD, role=role, by_operator=True)
        async with self.bench.db.transaction() as tx:
            return (await registration.register(tx, OPERATOR, new)).id

    async def log_in(self, name: str) -> str:
        async with self.client() as client:
            reply = await client.post("/v1/auth/login", json={"username": name, "password": PASSWORD})
        assert reply.status_code == 200, reply.text
        return str(reply.json()["token"])


@pytest.fixture
async def site(bench: Bench) -> AsyncIterator[Site]:
    bound = socket.create_server(("127.0.0.1", 0))
    async with (
        service.open_accounts(CHEAP, secret=stand.SECRET) as accounts,
        live.open_watch(bench.db, QUICK) as watch,
        open_changes(bench.db, ChangesConfig(heartbeat=QUICK.heartbeat)) as changes,
    ):
        tasks = Tasks(bench.submitter, RegistryCatalog(bench.registry), bench.followers)
        app = create_app(
            stand.services(bench.db, authenticate=accounts.authenticate),
            WebConfig(),
            routers=[
                create_router(tasks, watch),
                account_routes.create_router(accounts),
                change_routes.create_router(changes),
            ],
        )
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        serving = asyncio.create_task(server._serve(sockets=[bound]))
        yield Site(bench, accounts, f"http://127.0.0.1:{bound.getsockname()[1]}")
        watch.stop()
        changes.stop()
        server.should_exit = True
        async with asyncio.timeout(30):
            await serving


async def told_after(site: Site, token: str, path: str, shut_out: Callable[[], Awaitable[object]]) -> list[str]:
    """Which events come after the door was shut, until the stream ends."""
    kinds: list[str] = []
    async with (
        asyncio.timeout(60),
        site.client(token) as client,
        client.stream("GET", path) as stream,
    ):
        assert stream.status_code == 200
        shut = False
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                kinds.append(line.removeprefix("event: "))
            if not shut and kinds:
                await shut_out()
                shut, kinds = True, []
    async with site.client(token) as client:
        assert (await client.get(path)).status_code in {401, 403, 404}
    return kinds


@pytest.mark.parametrize("running", [False, True], ids=["a silent task", "a task that always has news"])
@pytest.mark.parametrize("how", ["logout", "key", "suspension"])
async def test_a_stream_ends_soon_after_its_credential(site: Site, how: str, running: bool) -> None:
    ada = await site.register("ada")
    token = session = await site.log_in("ada")
    task = await site.bench.submit("chatter", user_id=ada)
    async with site.client(session) as client:
        key = (await client.post("/v1/api-keys", json={"name": "k", "scopes": ["tasks:read"]})).json()
        if how == "key":
            token = key["key"]

        async def shut_out() -> None:
            if how == "logout":
                assert (await client.post("/v1/auth/logout")).status_code == 204
            elif how == "key":
                assert (await client.delete(f"/v1/api-keys/{key['id']}")).status_code == 204
            else:
                async with site.bench.db.transaction() as tx:
                    await administration.suspend(tx, OPERATOR, ada)

        if running:
            async with site.bench.working():
                kinds = await told_after(site, token, f"/v1/tasks/{task}/events", shut_out)
                async with site.bench.db.transaction() as tx:
                    await tx.execute("UPDATE headrace.task_queue SET cancel_requested = true")
        else:
            kinds = await told_after(site, token, f"/v1/tasks/{task}/events", shut_out)
    assert kinds[-1] == "revoked"


@pytest.mark.parametrize("path", ["/v1/tasks/{task}/events", "/v1/admin/changes"])
async def test_an_administrator_who_is_one_no_longer_sees_no_more_of_others(site: Site, path: str) -> None:
    await site.register("first", Role.ADMIN)
    ada, root = await site.register("ada"), await site.register("root", Role.ADMIN)
    task = await site.bench.submit("chatter", user_id=ada)

    async def shut_out() -> None:
        async with site.bench.db.transaction() as tx:
            await administration.set_role(tx, OPERATOR, root, Role.USER)

    assert await told_after(site, await site.log_in("root"), path.format(task=task), shut_out) == ["revoked"]


async def test_while_nobody_can_tell_a_stream_shows_nothing_and_goes_on_later(bench: Bench) -> None:
    answers: list[bool | Exception] = [DatabaseUnavailable(), RuntimeError("a mistake of ours"), True, False]

    async def may_see() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    task = await bench.submit("chatter")
    async with asyncio.timeout(60), live.open_watch(bench.db, QUICK) as watch:
        events: list[Event] = [each async for each in watch.follow(task, user_id="u_1", may_see=may_see)]
    assert answers == []
    assert [events[0].kind, events[-1].kind] == [Kind.TASK, Kind.REVOKED]
    assert {each.kind for each in events[1:-1]} == {Kind.HEARTBEAT}


async def test_an_export_breaks_off_when_its_reader_is_shut_out(
    db: Database, who: Who, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_routes, "_CHECK_EVERY_S", 0.0)
    asked = 0

    async def authenticate(db: Database, who: Who, credentials: Credentials, changes: bool) -> Caller:
        nonlocal asked
        asked += 1
        if asked > 1:
            raise Unauthenticated
        return await stand.authenticate(db, who, credentials, changes)

    async with db.transaction() as tx:
        await record_event(tx, who, Action.CREATED, Resource(ResourceType.TASK, "tsk_1"), new={"id": "tsk_1"})
    app = create_app(replace(stand.services(db), authenticate=authenticate), WebConfig(), routers=[audit_routes.router])
    async with stand.client(app, Authorization=f"Bearer {stand.USER},ADMIN") as admin:
        with pytest.raises(RuntimeError, match="already started"):  # over a socket, an answer that is not complete
            await admin.get("/v1/audit/export")
    assert asked == 2

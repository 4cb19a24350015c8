"""How often a request goes to the database and back: over a distance, that is all of its time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx2
import pytest

from headrace.accounts import api_keys
from headrace.accounts.service import Accounts
from headrace.assembly.api import reasons_not_ready
from headrace.assembly.followers import followers
from headrace.database import Database, DatabaseConfig
from headrace.outbox import interests
from headrace.outbox.interests import Interest
from headrace.tasks import live
from headrace.tasks.catalog import StoredCatalog, declare_types
from headrace.tasks.routes import create_router
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.web import health
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.accounts.conftest import LogIn, MakeUser
from tests.accounts.conftest import accounts as accounts
from tests.accounts.conftest import log_in as log_in
from tests.accounts.conftest import make_user as make_user
from tests.billing import stand as billing
from tests.edge import stand
from tests.open_types import OpenRegistry

NUMBERS = count()


class Site:
    """An API whose only connection counts what is sent over it."""

    def __init__(self, db: Database, client: httpx2.AsyncClient) -> None:
        self.db = db
        self.client = client
        self.sent: list[str] = []

    @asynccontextmanager
    async def counted(self) -> AsyncIterator[None]:
        def note(record: Any) -> None:
            self.sent.append(record.query)

        async with self.db.autocommit() as tx:  # the only connection, and the one that the pool keeps
            tx.connection.add_query_logger(note)
        yield
        await asyncio.sleep(0)  # notes are made by the loop
        async with self.db.autocommit() as tx:
            tx.connection.remove_query_logger(note)

    async def post(self, type_name: str, *, key: bool = True) -> httpx2.Response:
        headers = {"Idempotency-Key": f"k-{next(NUMBERS)}"} if key else {}
        return await self.client.post("/v1/tasks", json={"type": type_name, "payload": {"n": 1}}, headers=headers)


@pytest.fixture
async def site(db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn) -> AsyncIterator[Site]:
    registry = OpenRegistry()
    registry.task("free")(lambda _context, _payload: None)
    registry.task("metered", units=1)(lambda _context, _payload: None)
    registry.task("expensive", units=1001)(lambda _context, _payload: None)
    async with db.transaction() as tx:
        await declare_types(tx, registry)
    async with db.transaction() as tx:  # events have subscribers
        await interests.declare(tx, "test", "", [Interest("task.*")])
    await billing.grant_alone(db, (await make_user("ada")).id, 1000)
    caller = await log_in("ada")
    async with db.transaction() as tx:
        made = await api_keys.create_api_key(tx, caller, name="k", scopes={"tasks:write", "tasks:read"})
    moving = followers()
    tasks = Tasks.of(Submitter(StoredCatalog(remember_seconds=3600), moving))
    async with (
        await Database.connect(DatabaseConfig(db.config.url, pool_max=1)) as alone,
        live.open_watch(alone) as watch,
    ):
        services = stand.services(alone, authenticate=accounts.authenticate, readiness=lambda: reasons_not_ready(alone))
        app = create_app(services, WebConfig(), routers=[create_router(tasks, watch)])
        async with stand.client(app, Authorization=f"Bearer {made.key}") as client:
            yield Site(alone, client)


@pytest.mark.parametrize("type_name", ["free", "metered"])
@pytest.mark.parametrize(("key", "most"), [(True, 4), (False, 4)])
async def test_a_submission_takes_few_round_trips(site: Site, type_name: str, key: bool, most: int) -> None:
    assert (await site.post(type_name, key=key)).status_code == 201  # the type and the open tasks are known from now on
    async with site.counted():
        reply = await site.post(type_name, key=key)
    assert reply.status_code == 201
    assert len(site.sent) <= most, site.sent
    (row,) = await site.db.fetch_alone(
        """
        SELECT (SELECT count(*) FROM headrace.outbox_events WHERE aggregate_id = $1 AND event_type = 'task.created'
                  AND headers_json ->> 'request_id' IS NOT NULL),
               (SELECT count(*) FROM headrace.audit_events WHERE resource ->> 'identifier' = $1),
               (SELECT count(*) FROM headrace.usage_ledger WHERE task_id = $1 AND status = 'HELD'),
               (SELECT count(*) FROM headrace.idempotency_keys WHERE result_task_id = $1)
        """,
        reply.json()["id"],
    )
    assert tuple(row) == (1, 1, int(type_name == "metered"), int(key))


async def test_the_answer_to_a_submission_is_the_task_as_it_is_stored(site: Site) -> None:
    made = await site.post("metered")
    assert made.json() == (await site.client.get(made.headers["Location"])).json()


async def test_a_repetition_takes_few_round_trips(site: Site) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await site.client.post("/v1/tasks", json={"type": "free"}, headers=headers)
    async with site.counted():
        second = await site.client.post("/v1/tasks", json={"type": "free"}, headers=headers)
    assert second.json() == first.json()
    assert len(site.sent) <= 4, site.sent


@pytest.mark.parametrize(("path", "most"), [("/v1/tasks/{id}", 2), ("/v1/tasks", 2), ("/v1/tasks?status=QUEUED", 2)])
async def test_reading_takes_one_round_trip_beside_the_credentials(site: Site, path: str, most: int) -> None:
    task_id = (await site.post("free")).json()["id"]
    async with site.counted():
        assert (await site.client.get(path.format(id=task_id))).status_code == 200
    assert len(site.sent) <= most, site.sent


async def test_canceling_takes_few_round_trips(site: Site) -> None:
    first, second = [(await site.post("free")).json()["id"] for _ in range(2)]
    assert (await site.client.post(f"/v1/tasks/{first}/cancel")).status_code == 200
    async with site.counted():
        assert (await site.client.post(f"/v1/tasks/{second}/cancel")).status_code == 200
    assert len(site.sent) <= 11, site.sent


async def test_readiness_takes_one_round_trip(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_CACHE_SECONDS", 0)
    async with site.counted():
        assert (await site.client.get("/readyz")).json() == {"status": "ready"}
    assert len(site.sent) == 1, site.sent


@pytest.mark.parametrize("key", [True, False])
async def test_units_that_are_refused_with_the_commit_leave_nothing(site: Site, key: bool) -> None:
    for _ in range(2):
        reply = await site.post("expensive", key=key)
        assert (reply.status_code, reply.json()["code"]) == (402, "quota_exhausted")
        assert reply.json()["details"] == {
            "needed": 1001,
            "left": 1000,
            "renews_at": reply.json()["details"]["renews_at"],
        }
    left = """
        SELECT (SELECT count(*) FROM headrace.tasks), (SELECT count(*) FROM headrace.idempotency_keys),
               (SELECT count(*) FROM headrace.outbox_events), (SELECT count(*) FROM headrace.usage_ledger
                WHERE status = 'HELD'), (SELECT sum(quota_left) FROM headrace.entitlements)
    """
    assert [tuple(row) for row in await site.db.fetch_alone(left)] == [(0, 0, 0, 0, 1000)]

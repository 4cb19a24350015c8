"""Requests of commands to the routes in this process: parts of an answer, errors, transactions, identity."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from headrace.access import AdminOnly
from headrace.assembly.secret_key import SecretKeyMissing
from headrace.audit import Who
from headrace.cli.calls import path
from headrace.cli.inprocess import JoinedDatabase, LocalApi, connected
from headrace.cli.requests import ActingFor
from headrace.cli.session import operator
from headrace.cli.transport import InProcess
from headrace.database import Database, DatabaseConfig
from headrace.errors import HeadraceError, NotFound
from headrace.settings import Settings, load
from tests.cli.conftest import Call, Place


@pytest.fixture
async def db(migrated: Place) -> AsyncIterator[JoinedDatabase]:
    config = DatabaseConfig(migrated.app_url, pool_max=2, connect_timeout=timedelta(seconds=20))
    async with await JoinedDatabase.connect(config) as opened:
        yield opened


@pytest.fixture
def settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("HEADRACE_DATA_DIR", str(tmp_path_factory.mktemp("data")))
    return load()


@pytest.fixture
async def api(db: JoinedDatabase, settings: Settings) -> AsyncIterator[LocalApi]:
    async with connected(settings, db, operator("test"), embedded=False) as opened:
        yield opened


async def _get(app: InProcess) -> httpx2.Response:
    async with httpx2.AsyncClient(transport=app, base_url="http://here") as client:
        return await client.get("/")


async def test_an_answer_comes_in_parts_while_the_app_still_works() -> None:
    asked = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await asked.wait()
        await send({"type": "http.response.body", "body": b"last"})

    async with (
        httpx2.AsyncClient(transport=InProcess(app), base_url="http://here") as client,
        client.stream("GET", "/") as response,
    ):
        parts = response.aiter_bytes()
        assert await anext(parts) == b"first"
        asked.set()
        assert [part async for part in parts] == [b"last"]


@pytest.mark.parametrize("sent", [0, 1, 2])
async def test_what_the_app_raises_is_raised_whatever_was_sent_before(sent: int) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if sent > 0:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        if sent > 1:
            await send({"type": "http.response.body", "body": b"part", "more_body": True})
        raise AdminOnly

    with pytest.raises(AdminOnly):
        await _get(InProcess(app))


async def test_a_client_that_leaves_ends_the_app() -> None:
    ended = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b"more", "more_body": True})
        finally:
            ended.set()

    async with (
        httpx2.AsyncClient(transport=InProcess(app), base_url="http://here") as client,
        client.stream("GET", "/") as response,
    ):
        assert await anext(response.aiter_bytes()) == b"more"
    assert ended.is_set()


async def test_requests_together_are_one_transaction(api: LocalApi, db: Database) -> None:
    async def make(name: str) -> None:
        await api.ask("POST", "/v1/admin/plans", body={"name": name, "price_cents": 1, "monthly_quota": 1})

    with pytest.raises(HeadraceError):
        async with api.together():
            await make("one")
            await make("one")  # the name is taken
    async with api.together():
        await make("two")
    found = await db.fetch_alone("SELECT name FROM headrace.plans WHERE name IN ('one', 'two')")
    assert [row["name"] for row in found] == ["two"]


async def test_the_trail_names_the_operator_and_not_a_request(api: LocalApi, db: Database) -> None:
    who: Who = operator("test")
    made = await api.ask("POST", "/v1/admin/users", body={"username": "ada", "role": "USER"})
    acting = ActingFor(made["user"]["id"], "USER")
    await api.ask("POST", "/v1/api-keys", body={"name": "ci", "scopes": ["tasks:read"]}, acting_for=acting)
    rows = await db.fetch_alone(
        'SELECT "user", actor_type, user_agent, client_ip, request_method FROM headrace.audit_events ORDER BY seq'
    )
    assert len(rows) >= 2
    for row in rows:
        assert row["user"]["username"] == who.principal.username
        assert (row["actor_type"], row["user_agent"]) == ("SYSTEM", who.user_agent)
        assert (row["client_ip"], row["request_method"]) == (None, None)
    owners = await db.fetch_alone("SELECT user_id FROM headrace.api_keys")
    assert [row["user_id"] for row in owners] == [made["user"]["id"]]


@pytest.mark.parametrize("name", [".", ".."])
async def test_an_id_of_dots_reaches_its_own_route(api: LocalApi, name: str) -> None:
    """httpx resolved the dots, so that the request went to another route: `tasks show ..` ended in a LookupError."""
    for method in ("GET", "DELETE"):
        with pytest.raises(NotFound) as refused:
            await api.ask(method, path("tasks", name))
        assert refused.value.code == "task_not_found"


async def test_a_list_longer_than_a_page_comes_whole_without_a_secret_key(api: LocalApi, db: Database) -> None:
    await db.fetch_alone(
        "INSERT INTO headrace.outbox_events (event_id, event_type, event_version, aggregate_type, aggregate_id,"
        " payload_json, status)"
        " SELECT 'evt_' || n, 'task.created', 1, 'task', 'tsk_' || n, '{}', 'PENDING' FROM generate_series(1, 250) AS n"
    )
    found = await api.list("/v1/admin/outbox/events", limit=230)
    assert len({event["id"] for event in found}) == 230


async def test_only_an_idempotency_key_needs_the_secret_key(api: LocalApi) -> None:
    body = {"name": "Pro", "price_cents": 1, "monthly_quota": 1}
    with pytest.raises(SecretKeyMissing):
        await api.ask("POST", "/v1/admin/plans", body=body, key="once")
    await api.ask("POST", "/v1/admin/plans", body=body)


def test_a_request_that_is_not_valid_names_the_field_alone(call: Call, migrated: Place) -> None:
    done = call("plans", "add", "Pro", "--price-cents", "1", "--units", str(10**18), settings=migrated.settings)
    assert done.code == 2
    assert done.complaint.startswith("monthly_quota: ")

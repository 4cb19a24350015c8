"""Configs, capabilities and risks over HTTP. W-21."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from headrace.access import Role
from headrace.accounts import login, registration, service
from headrace.accounts.routes import create_router
from headrace.accounts.service import Accounts
from headrace.assembly.config_registry import config_keys, offer
from headrace.audit import Who
from headrace.configs import cache
from headrace.configs import routes as config_routes
from headrace.database import Database
from headrace.edge.limits import LimitConfig
from headrace.edge.services import Services
from headrace.risks import routes as risk_routes
from headrace.settings import load
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.accounts.conftest import CHEAP, PASSWORD, SECRET

RISK = {
    "category": "COST",
    "severity": "HIGH",
    "trigger_condition": "the bill doubles",
    "mitigation_plan": "watch it",
    "owner": "ada",
}


@pytest.fixture
async def known() -> AsyncIterator[Accounts]:
    async with service.open_accounts(CHEAP, secret=SECRET) as opened:
        yield opened


@pytest.fixture
async def client(db: Database, known: Accounts) -> AsyncIterator[httpx2.AsyncClient]:
    services = Services(
        db=db,
        authenticate=known.authenticate,
        secret=SECRET,
        limits=LimitConfig(per_minute=60_000, burst=10_000),
    )
    async with cache.open_configs(db) as held:
        routers = [
            create_router(known),
            config_routes.create_router(config_keys(), held, offer(load())),
            risk_routes.router,
        ]
        app = create_app(services, WebConfig(), routers=routers)
        transport = httpx2.ASGITransport(app, client=("192.0.2.7", 4711))
        async with httpx2.AsyncClient(transport=transport, base_url="http://headrace.test") as opened:
            yield opened


async def enter(db: Database, known: Accounts, name: str, role: Role) -> tuple[str, dict[str, str]]:
    new = await registration.prepare(known, username=name, password=PASSWORD, role=role, by_operator=True)
    async with db.transaction() as tx:
        user = await registration.register(tx, Who.system(), new)
    entered = await login.log_in(db, known, Who.system(), username=name, password=PASSWORD)
    return user.id, {"Authorization": f"Bearer {entered.token}"}


@pytest.fixture
async def admin(db: Database, known: Accounts) -> dict[str, str]:
    return (await enter(db, known, "root", Role.ADMIN))[1]


async def test_clients_are_told_what_there_is_and_what_holds_for_them(
    client: httpx2.AsyncClient, db: Database, known: Accounts, admin: dict[str, str]
) -> None:
    stranger = (await client.get("/v1/capabilities")).json()
    assert stranger["accounts"]["registration"] == "closed"
    assert stranger["limits"]["page_items"] == 100
    assert stranger["configs"] == {
        "announcement": None,
        "contact": {"email": None, "url": None},
        "features": {},
        "legal": {"terms": None, "privacy": None},
        "language": "en",
    }
    ada_id, ada = await enter(db, known, "ada", Role.USER)
    url = "/v1/admin/configs/features"
    for params, beta in (({}, False), ({"scope": "USER", "scope_id": ada_id}, True)):
        done = await client.put(url, params=params, json={"value": {"beta": beta}}, headers=admin)
        assert done.status_code == 200, done.text
    # Told at once: the notification of this process's own change is on its way, so look until it is there.
    for headers, beta in ((ada, True), (admin, False), ({}, False)):
        assert await until_features(client, headers) == {"beta": beta}
    refused = await client.get("/v1/capabilities", headers={"Authorization": "Bearer hrk_wrong"})
    assert refused.status_code == 401


async def until_features(client: httpx2.AsyncClient, headers: dict[str, str]) -> Any:
    for _ in range(1000):
        if found := (await client.get("/v1/capabilities", headers=headers)).json()["configs"]["features"]:
            return found
    raise AssertionError("nothing was told")


async def test_configs_are_for_administrators(
    client: httpx2.AsyncClient, db: Database, known: Accounts, admin: dict[str, str]
) -> None:
    _, ada = await enter(db, known, "ada", Role.USER)
    for path in ("/v1/admin/configs", "/v1/admin/configs/keys", "/v1/admin/risks", "/v1/admin/risks/board"):
        assert (await client.get(path, headers=ada)).status_code == 403
        assert (await client.get(path, headers=admin)).status_code == 200


async def test_a_config_over_http(client: httpx2.AsyncClient, admin: dict[str, str]) -> None:
    url = "/v1/admin/configs/announcement"
    bad = await client.put(url, json={"value": {"text": "soon", "level": "loud"}}, headers=admin)
    assert (bad.status_code, bad.json()["code"]) == (400, "invalid_config_value")
    assert bad.json()["details"]["errors"][0]["field"] == "value.level"
    first = await client.put(url, json={"value": {"text": "soon"}}, headers={**admin, "If-Match": '"0"'})
    assert (first.status_code, first.headers["ETag"]) == (200, '"1"')
    again = await client.put(url, json={"value": {"text": "now"}}, headers={**admin, "If-Match": '"0"'})
    assert again.status_code == 412
    assert (await client.get(url, headers=admin)).json()["value"]["text"] == "soon"
    listed = (await client.get("/v1/admin/configs", params={"is_active": True}, headers=admin)).json()["items"]
    assert [item["key"] for item in listed] == ["announcement"]
    wrong = await client.get(url, params={"scope": "USER"}, headers=admin)
    assert wrong.json()["code"] == "invalid_config_scope"
    assert (await client.delete(url, headers=admin)).status_code == 204
    assert (await client.get(url, headers=admin)).status_code == 404


async def test_lists_page_on(client: httpx2.AsyncClient, admin: dict[str, str]) -> None:
    for number in range(3):
        assert (
            await client.put(
                "/v1/admin/configs/features",
                params={"scope": "TENANT", "scope_id": f"t{number}"},
                json={"value": {}},
                headers=admin,
            )
        ).status_code == 200
        assert (await client.post("/v1/admin/risks", json=RISK, headers=admin)).status_code == 201
    for path, name in (("/v1/admin/configs", "scope_id"), ("/v1/admin/risks", "risk_id")):
        seen, cursor = [], None
        while True:
            params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
            page = (await client.get(path, params=params, headers=admin)).json()
            seen += [item[name] for item in page["items"]]
            if (cursor := page["next_cursor"]) is None:
                break
        assert len(seen) == len(set(seen)) == 3


async def test_a_risk_over_http(client: httpx2.AsyncClient, admin: dict[str, str]) -> None:
    body = {**RISK, "risk_id": "R-1", "refs": {"trace_ids": ["t-1"], "links": ["https://example.org/bill"]}}
    keyed = {**admin, "Idempotency-Key": "one"}
    made = [await client.post("/v1/admin/risks", json=body, headers=keyed) for _ in range(2)]
    assert [each.status_code for each in made] == [201, 201]
    assert made[1].headers["Idempotency-Replayed"] == "true"
    taken = await client.post("/v1/admin/risks", json=body, headers=admin)
    assert (taken.status_code, taken.json()["code"]) == (409, "risk_id_taken")
    url = made[0].headers["Location"]
    changed = await client.patch(url, json={"status": "MITIGATING"}, headers={**admin, "If-Match": '"0"'})
    assert (changed.json()["status"], changed.headers["ETag"]) == ("MITIGATING", '"1"')
    assert (await client.patch(url, json={}, headers=admin)).status_code == 422
    board = (await client.get("/v1/admin/risks/board", headers=admin)).json()
    assert board["by_severity"] == {"CRITICAL": 0, "HIGH": 1, "MEDIUM": 0, "LOW": 0}
    assert board["squares"] == [{"owner": "ada", "status": "MITIGATING", "severity": "HIGH", "count": 1}]
    assert (await client.get(f"{url}/traces", headers=admin)).json()["items"] == []
    found = (await client.get("/v1/admin/risks", params={"trace_id": "t-1"}, headers=admin)).json()["items"]
    assert [item["risk_id"] for item in found] == ["R-1"]
    assert (await client.delete(url, headers=admin)).status_code == 204
    assert (await client.get(url, headers=admin)).status_code == 404

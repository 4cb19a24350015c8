"""Locks over HTTP: for programs outside; each caller's own, and all of them for administrators. S-13."""

import asyncio
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from headrace.database import Database
from headrace.locks import service
from headrace.locks.routes import router
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand


@pytest.fixture
def app(db: Database) -> FastAPI:
    return create_app(stand.services(db), WebConfig(), routers=[router])


async def take(client: httpx2.AsyncClient, key: str = "deploy", **body: Any) -> dict[str, Any]:
    reply = await client.post("/v1/locks", json={"key": key, **body})
    assert reply.status_code == 201, reply.text
    lock: dict[str, Any] = reply.json()
    return lock


async def trail(db: Database) -> list[str]:
    rows = await db.fetch_alone("SELECT action FROM headrace.audit_events WHERE resource_type = 'lock' ORDER BY seq")
    return [row["action"] for row in rows]


async def test_acquire_renew_release_list(ada: httpx2.AsyncClient, db: Database) -> None:
    lock = await take(ada, ttl_seconds=20, purpose="release 1.2", holder="ci-7")
    assert (lock["status"], lock["fence"], lock["holder"], lock["purpose"]) == ("ACTIVE", 1, "ci-7", "release 1.2")
    assert 15 < lock["remaining_seconds"] <= 20

    held = await ada.post("/v1/locks", json={"key": "deploy"})
    assert (held.status_code, held.json()["code"]) == (409, "lock_held")
    assert held.json()["details"]["holder"] == "ci-7"
    assert 15 < int(held.headers["Retry-After"]) <= 20

    named = {"key": "deploy", "token": lock["token"]}
    renewed = await ada.post("/v1/locks/renew", json={**named, "ttl_seconds": 3600})
    assert renewed.json()["remaining_seconds"] > 3500
    assert "token" not in renewed.json()
    wrong = await ada.post("/v1/locks/renew", json={**named, "token": "guess"})
    assert (wrong.status_code, wrong.json()["code"]) == (409, "lock_lost")

    assert (await ada.post("/v1/locks/release", json=named)).json()["status"] == "RELEASED"
    again = await ada.post("/v1/locks/release", json=named)
    assert (again.status_code, again.json()["code"]) == (409, "lock_lost")

    assert (await take(ada))["fence"] == 2
    items = (await ada.get("/v1/locks")).json()["items"]
    assert [(item["fence"], item["status"]) for item in items] == [(2, "ACTIVE"), (1, "RELEASED")]
    assert lock["token"] not in str(items)
    assert await trail(db) == ["granted", "updated", "granted"]


async def test_lists_are_filtered_and_paged(ada: httpx2.AsyncClient) -> None:
    for number in range(3):
        lock = await take(ada, f"k{number}", holder=f"h{number % 2}")
        if number == 1:
            await ada.post("/v1/locks/release", json={"key": "k1", "token": lock["token"]})

    async def keys(query: str) -> list[str]:
        return [item["key"] for item in (await ada.get(f"/v1/locks?{query}")).json()["items"]]

    assert await keys("status=ACTIVE") == ["k2", "k0"]
    assert await keys("status=RELEASED") == ["k1"]
    assert await keys("status=EXPIRED") == []
    assert await keys("holder=h0") == ["k2", "k0"]
    assert await keys("key=k1") == ["k1"]
    first = (await ada.get("/v1/locks?limit=2")).json()
    rest = (await ada.get(f"/v1/locks?limit=2&cursor={first['next_cursor']}")).json()
    assert [item["key"] for item in first["items"] + rest["items"]] == ["k2", "k1", "k0"]
    assert rest["next_cursor"] is None


async def test_the_same_request_gets_the_same_token(ada: httpx2.AsyncClient, db: Database) -> None:
    await take(ada, "k", ttl_seconds=60)
    once = {"Idempotency-Key": "try-1"}
    body = {"key": "k"}
    assert (await ada.post("/v1/locks", json=body, headers=once)).status_code == 409
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.task_locks SET state = 'expired'")
    # "held" was no last word: the same request may be sent until it is answered otherwise
    first = await ada.post("/v1/locks", json=body, headers=once)
    for waited in ({}, {"wait_seconds": 5}):  # for how long one waits is not what one asks for
        again = await ada.post("/v1/locks", json=body | waited, headers=once)
        assert first.status_code == again.status_code == 201
        assert first.json() == again.json()
        assert again.headers["Idempotency-Replayed"] == "true"
    other = await ada.post("/v1/locks", json=body | {"ttl_seconds": 5}, headers=once)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    rows = await db.fetch_alone("SELECT response_json::text AS kept FROM headrace.idempotency_keys")
    assert first.json()["token"] not in rows[0]["kept"]


async def test_a_lock_is_waited_for(ada: httpx2.AsyncClient) -> None:
    lock = await take(ada, "k")
    waiting = asyncio.create_task(take(ada, "k", wait_seconds=20))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await ada.post("/v1/locks/release", json={"key": "k", "token": lock["token"]})
    assert (await waiting)["fence"] == 2
    late = await ada.post("/v1/locks", json={"key": "k", "wait_seconds": 0.05})
    assert late.status_code == 409


async def test_strangers_do_not_meet(ada: httpx2.AsyncClient, eve: httpx2.AsyncClient) -> None:
    lock = await take(ada, "k")
    assert (await take(eve, "k"))["fence"] == 1
    stolen = await eve.post("/v1/locks/release", json={"key": "k", "token": lock["token"]})
    assert stolen.status_code == 409
    assert len((await eve.get("/v1/locks")).json()["items"]) == 1
    for query in ("user_id=*", f"user_id={lock['user_id']}"):
        assert (await eve.get(f"/v1/locks?{query}")).status_code == 403
    forced = await eve.post("/v1/locks/force-release", json={"key": "k", "user_id": lock["user_id"]})
    assert forced.status_code == 403


async def test_an_administrator_sees_all_and_takes_away_on_record(
    ada: httpx2.AsyncClient, root: httpx2.AsyncClient, db: Database
) -> None:
    lock = await take(ada, "k")
    [seen] = (await root.get("/v1/locks?user_id=*&status=ACTIVE")).json()["items"]
    assert seen["user_id"] == lock["user_id"]
    body = {"key": "k", "user_id": lock["user_id"]}
    assert (await root.post("/v1/locks/force-release", json=body)).json()["status"] == "RELEASED"
    nobody = await root.post("/v1/locks/force-release", json=body)
    assert (nobody.status_code, nobody.json()["code"]) == (404, "lock_not_found")
    lost = await ada.post("/v1/locks/renew", json={"key": "k", "token": lock["token"]})
    assert (lost.status_code, lost.json()["code"]) == (409, "lock_lost")
    assert await trail(db) == ["granted", "read", "revoked"]
    [row] = await db.fetch_alone("SELECT * FROM headrace.audit_events WHERE action = 'revoked'")
    assert "released" in row["diff_object"]["new_object"]
    assert "token" not in str(row["diff_object"])


async def test_a_key_needs_the_scope(app: FastAPI, db: Database) -> None:
    user_id = await stand.user(db, "ada")
    async with stand.client(app, Authorization=f"Bearer {user_id},locks:read") as reader:
        assert (await reader.get("/v1/locks")).status_code == 200
        refused = await reader.post("/v1/locks", json={"key": "k"})
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"key": ""}, "body.key"),
        ({"key": "k", "ttl_seconds": 0}, "body.ttl_seconds"),
        ({"key": "k", "ttl_seconds": 86401}, "body.ttl_seconds"),
        ({"key": "k", "wait_seconds": 31}, "body.wait_seconds"),
        ({"key": "k", "purpose": "p" * 256}, "body.purpose"),
        ({"key": "k", "fence": 1}, "body.fence"),
    ],
)
async def test_what_cannot_be_is_named(ada: httpx2.AsyncClient, body: dict[str, Any], field: str) -> None:
    reply = await ada.post("/v1/locks", json=body)
    assert reply.status_code == 422
    assert [error["field"] for error in reply.json()["errors"]] == [field]


async def test_locks_of_one_user_have_a_cap(ada: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_LOCKS", 2)
    first = await take(ada, "one")
    await take(ada, "two")
    refused = await ada.post("/v1/locks", json={"key": "three"})
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_locks")
    await ada.post("/v1/locks/release", json={"key": "one", "token": first["token"]})
    await take(ada, "three")

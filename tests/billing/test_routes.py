"""Entitlements, usage and the ledger over HTTP; and what a request is told that costs more than is left."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from headrace import ids
from headrace.assembly.followers import followers
from headrace.audit import Who
from headrace.billing.adjusting import adjust
from headrace.billing.ledger_routes import router
from headrace.database import Database, Tx
from headrace.tasks.catalog import StoredCatalog, declare_types
from headrace.tasks.live import open_watch
from headrace.tasks.routes import create_router
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.billing import stand as money
from tests.edge import stand
from tests.open_types import OpenRegistry


async def nothing(context: object, payload: object) -> None: ...


@pytest.fixture
async def app(db: Database) -> Any:
    registry = OpenRegistry()
    registry.task("render", units="payload.units")(nothing)
    async with db.transaction() as tx:
        await declare_types(tx, registry)
    catalog, following = StoredCatalog(remember_seconds=0), followers()
    tasks = Tasks(Submitter(catalog, following), catalog, following)
    async with open_watch(db) as watch:
        yield create_app(stand.services(db), WebConfig(), routers=[create_router(tasks, watch), router])
        watch.stop()


async def order(client: httpx2.AsyncClient, units: int, **headers: str) -> httpx2.Response:
    return await client.post("/v1/tasks", json={"type": "render", "payload": {"units": units}}, headers=headers)


async def id_of(client: httpx2.AsyncClient) -> str:
    return client.headers["Authorization"].removeprefix("Bearer ").partition(",")[0]


async def test_what_costs_too_much_is_answered_with_402_and_what_is_left(ada: httpx2.AsyncClient, db: Database) -> None:
    # W-10
    await money.grant_alone(db, await id_of(ada), 4)
    assert (await order(ada, 3)).status_code == 201
    refused = await order(ada, 3)
    assert (refused.status_code, refused.json()["code"]) == (402, "quota_exhausted")
    details = refused.json()["details"]
    assert (details["needed"], details["left"]) == (3, 1)
    assert datetime.fromisoformat(details["renews_at"]) > datetime.now(UTC) + timedelta(days=28)
    batch = {"tasks": [{"type": "render", "payload": {"units": 1}}] * 2}
    assert (await ada.post("/v1/tasks/batch", json=batch)).status_code == 402
    assert (await db.fetch_alone("SELECT count(*) FROM headrace.tasks"))[0][0] == 1


async def test_the_same_request_succeeds_once_there_is_quota_again(ada: httpx2.AsyncClient, db: Database) -> None:
    # W-15: a refusal for want of units is not kept under the key.
    once = {"Idempotency-Key": "order-7"}
    assert (await order(ada, 1, **once)).status_code == 402
    quota = await money.grant_alone(db, await id_of(ada), 1)
    first = await order(ada, 1, **once)
    assert first.status_code == 201
    assert (await order(ada, 1, **once)).json()["id"] == first.json()["id"]
    assert await money.left(db, quota) == 0


async def test_trying_again_by_hand_holds_anew_or_is_refused(ada: httpx2.AsyncClient, db: Database) -> None:  # W-08
    quota = await money.grant_alone(db, await id_of(ada), 3)
    task_id = (await order(ada, 2)).json()["id"]
    for _ in range(2):  # twice: each hold has a key of its own
        assert (await ada.post(f"/v1/tasks/{task_id}/cancel")).json()["status"] == "CANCELED"
        assert await money.left(db, quota) == 3
        assert (await ada.post(f"/v1/tasks/{task_id}/retry")).json()["status"] == "QUEUED"
        assert await money.left(db, quota) == 1
    await ada.post(f"/v1/tasks/{task_id}/cancel")
    assert (await order(ada, 2)).status_code == 201
    refused = await ada.post(f"/v1/tasks/{task_id}/retry")
    assert (refused.status_code, refused.json()["code"]) == (402, "quota_exhausted")
    assert (await ada.get(f"/v1/tasks/{task_id}")).json()["status"] == "CANCELED"


async def test_what_was_used_can_be_listed_summed_and_taken_along(ada: httpx2.AsyncClient, db: Database) -> None:
    quota = await money.grant_alone(db, await id_of(ada), 10)
    kept = (await order(ada, 2)).json()["id"]
    dropped = (await order(ada, 3)).json()["id"]
    await ada.post(f"/v1/tasks/{dropped}/cancel")
    balance = (await ada.get("/v1/usage/balance")).json()
    assert (balance["total"], balance["left"], balance["held"]) == (10, 8, 2)

    page = (await ada.get("/v1/usage", params={"limit": 2})).json()
    rest = (await ada.get("/v1/usage", params={"limit": 2, "cursor": page["next_cursor"]})).json()
    entries = page["items"] + rest["items"]
    assert [(entry["status"], entry["units"]) for entry in entries] == [
        ("RELEASED", 3), ("HELD", 3), ("HELD", 2), ("COMMITTED", 10),
    ]  # fmt: skip
    found = (await ada.get("/v1/usage", params={"task_id": kept})).json()["items"]
    assert [(entry["status"], entry["entitlement_id"]) for entry in found] == [("HELD", quota)]
    assert (await ada.get("/v1/usage", params={"status": "RELEASED"})).json()["items"][0]["source"] == "TASK_CANCEL"

    days = (await ada.get("/v1/usage/days")).json()["days"]
    assert len(days) == 30
    assert days[-1] | {"day": ""} == {"day": "", "used": 0, "released": 3, "tasks": 0}
    bad = await ada.get("/v1/usage/days", params={"since": "2024-01-01", "until": "2026-01-01"})
    assert (bad.status_code, bad.json()["code"]) == (400, "usage_range_invalid")

    exported = await ada.get("/v1/usage/export")
    assert exported.headers["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(exported.text)))
    assert [row["id"] for row in rows] == [entry["id"] for entry in entries]

    [shown] = (await ada.get("/v1/entitlements")).json()["items"]
    assert (shown["id"], shown["quota_left"], shown["status"]) == (quota, 8, "ACTIVE")
    assert (await ada.get(f"/v1/entitlements/{quota}")).json() == shown


async def test_other_peoples_usage_is_for_administrators_and_audited(
    ada: httpx2.AsyncClient, root: httpx2.AsyncClient, db: Database
) -> None:
    theirs = await money.grant_alone(db, await stand.user(db, "bea"), 10)
    assert (await ada.get(f"/v1/entitlements/{theirs}")).status_code == 404
    for path in ("/v1/usage", "/v1/entitlements", "/v1/usage/export"):
        assert (await ada.get(path, params={"user_id": "*"})).status_code == 403
        assert (await root.get(path, params={"user_id": "*"})).status_code == 200
    assert (await root.get(f"/v1/entitlements/{theirs}")).json()["quota_left"] == 10
    rows = await db.fetch_alone("SELECT resource_type FROM headrace.audit_events WHERE action = 'read' ORDER BY seq")
    assert [row["resource_type"] for row in rows] == ["ledger", "entitlement", "ledger", "entitlement"]


async def test_an_administrator_adjusts_a_quota_once_with_a_reason(root: httpx2.AsyncClient, db: Database) -> None:
    # W-11, W-15
    quota = await money.grant_alone(db, await stand.user(db, "bea"), 10)
    path = f"/v1/admin/entitlements/{quota}/adjust"
    for _ in range(2):
        body = {"units": 5, "reason": "the outage of Monday"}
        done = await root.post(path, json=body, headers={"Idempotency-Key": "monday"})
        assert done.status_code == 201
        assert (done.json()["entitlement"]["quota_left"], done.json()["entry"]["remark"]) == (15, body["reason"])
    taken = await root.post(path, json={"units": -15, "reason": "a mistake"})
    assert (taken.json()["entitlement"]["quota_total"], taken.json()["entry"]["direction"]) == (0, "DEBIT")
    refused = await root.post(path, json={"units": -1, "reason": "another"})
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_too_small")
    assert (await root.post(path, json={"units": 0, "reason": "nothing"})).json()["code"] == "adjustment_invalid"
    none = await root.post(f"/v1/admin/entitlements/{ids.new('ent')}/adjust", json={"units": 1, "reason": "x"})
    assert none.status_code == 404
    rows = await db.fetch_alone(
        "SELECT data FROM headrace.audit_events WHERE resource_type = 'entitlement' AND action = 'updated' ORDER BY seq"
    )
    assert [row["data"]["units"] for row in rows] == ["5", "-15"]
    verified = (await root.post("/v1/admin/ledger/verify")).json()
    assert (verified["fault_count"], verified["entries"]) == (0, 3)


async def test_no_adjustment_makes_more_than_can_be_counted(root: httpx2.AsyncClient, db: Database) -> None:
    quota = await money.grant_alone(db, await stand.user(db, "bea"), 2**31 - 2)
    path = f"/v1/admin/entitlements/{quota}/adjust"
    refused = await root.post(path, json={"units": 2, "reason": "a gift"})
    assert (refused.status_code, refused.json()["code"]) == (400, "adjustment_invalid")
    assert (await root.post(path, json={"units": 1, "reason": "a gift"})).status_code == 201


async def test_an_adjustment_repeated_over_the_end_of_a_month_is_one(tx: Tx) -> None:  # W-15
    user_id = ids.new("u")
    await tx.execute("INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, $1, '!')", user_id)
    quota = await money.grant(tx, user_id, 10)
    last_month = datetime.now(UTC).replace(day=1) - timedelta(days=1)
    entry = ids.new("led", at=last_month)
    await tx.execute(
        "INSERT INTO headrace.usage_ledger (id, period, user_id, entitlement_id, consume_unit, direction, status,"
        " source, idempotency_key) VALUES ($1, $2, $3, $4, 5, 'CREDIT', 'COMMITTED', 'MANUAL_ADJUST', $5)",
        entry,
        last_month.date().replace(day=1),
        user_id,
        quota,
        f"{last_month:%Y%m}:adjust:midnight",
    )
    again = await adjust(tx, Who.system(), quota, 5, reason="a gift", key="midnight")
    assert (again.entry.id, again.entitlement.quota_left) == (entry, 10)


async def test_the_last_verification_can_be_read_and_names_what_is_wrong(
    root: httpx2.AsyncClient, db: Database
) -> None:
    assert (await root.get("/v1/admin/ledger/verification")).json() is None
    quota = await money.grant_alone(db, await stand.user(db, "bea"), 10)
    await db.fetch_alone("UPDATE headrace.entitlements SET quota_left = 9")
    assert (await root.post("/v1/admin/ledger/verify")).json()["fault_count"] == 1
    [fault] = (await root.get("/v1/admin/ledger/verification")).json()["faults"]
    assert (fault["kind"], fault["about"]) == ("quota_unexplained", quota)
    assert "10 are left; the entitlement says 9 of 10" in fault["message"]


def test_the_app_is_one(app: FastAPI) -> None:
    assert app.openapi()["paths"]["/v1/tasks"]["post"]["responses"]["402"]

"""The trail over HTTP: who sees what, a page at a time, as files, with proofs."""

import csv
import io
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from headrace import audit, ids
from headrace.admin.audit.routes import router
from headrace.audit import Action, Principal, PrincipalType, Resource, ResourceType, Who, sealing
from headrace.database import Database
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand

ADA, BEA = ids.new("u"), ids.new("u")


@pytest.fixture
async def clients(db: Database, who: Who) -> AsyncIterator[dict[str, httpx2.AsyncClient]]:
    app = create_app(stand.services(db), WebConfig(), routers=[router])
    async with db.transaction() as tx:
        for n, user in enumerate([ADA, BEA] * 3):
            by = who.acting_as(Principal(user, "ada" if user == ADA else "bea", PrincipalType.USER))
            resource = Resource(ResourceType.TASK, f"tsk_{n}")
            at = datetime.now(UTC) - timedelta(seconds=10 - n)
            await audit.record(tx, by, Action.CREATED, resource, new={"id": f"tsk_{n}"}, now=at)
    async with (
        stand.client(app, Authorization=f"Bearer {ADA}") as ada,
        stand.client(app, Authorization=f"Bearer {stand.USER},ADMIN") as admin,
        stand.client(app, Authorization=f"Bearer {ADA},tasks:read") as narrow,
    ):
        yield {"ada": ada, "admin": admin, "narrow": narrow}


async def read(client: httpx2.AsyncClient, **asked: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        reply = await client.get("/v1/audit/events", params={**asked, **cursor})
        assert reply.status_code == 200, reply.text
        items += reply.json()["items"]
        if reply.json()["next_cursor"] is None:
            return items
        cursor = {"cursor": reply.json()["next_cursor"]}


def things(items: list[dict[str, Any]]) -> list[str]:
    return [item["resource"]["identifier"] for item in items]


async def test_people_see_what_they_did_themselves(clients: dict[str, httpx2.AsyncClient]) -> None:
    assert things(await read(clients["ada"], limit=2)) == ["tsk_4", "tsk_2", "tsk_0"]
    assert things(await read(clients["ada"], q="tsk_1")) == []
    assert things(await read(clients["ada"], q="tsk_2")) == ["tsk_2"]
    refused = await clients["ada"].get("/v1/audit/events", params={"user_id": BEA})
    assert (refused.status_code, refused.json()["code"]) == (403, "admin_only")
    assert (await clients["narrow"].get("/v1/audit/events")).json()["code"] == "scope_missing"


async def test_administrators_see_everything_and_that_is_audited(
    db: Database, clients: dict[str, httpx2.AsyncClient]
) -> None:
    found = await read(clients["admin"], resource_type="task", limit=4)
    assert things(found) == [f"tsk_{n}" for n in range(5, -1, -1)]
    assert things(await read(clients["admin"], user_id=BEA, action="created")) == ["tsk_5", "tsk_3", "tsk_1"]
    looks = await read(clients["admin"], resource_type="auditTrail")
    assert looks[-1]["action"] == "read"
    assert looks[-1]["data"] == {"resource_type": "task", "verb": "list"}


async def test_what_changed_is_listed_without_who_looked(clients: dict[str, httpx2.AsyncClient]) -> None:
    looks = await read(clients["admin"])
    assert "read" in {event["action"] for event in looks}
    changes = await read(clients["admin"], changes="true", limit=2)
    assert "read" not in {event["action"] for event in changes}
    assert things(changes) == [each for each in things(looks) if each.startswith("tsk_")]
    assert things(await read(clients["admin"], changes="true", user_id=BEA)) == ["tsk_5", "tsk_3", "tsk_1"]


async def test_a_cursor_is_bound_to_its_filters(clients: dict[str, httpx2.AsyncClient]) -> None:
    cursor = (await clients["admin"].get("/v1/audit/events?limit=1&resource_type=task")).json()["next_cursor"]
    reply = await clients["admin"].get("/v1/audit/events", params={"limit": 1, "cursor": cursor})
    assert reply.json()["code"] == "invalid_cursor"
    reply = await clients["ada"].get("/v1/audit/events?resource_type=task", params={"limit": 1, "cursor": cursor})
    assert reply.json()["code"] == "invalid_cursor"


@pytest.mark.parametrize(
    "query", ["action=modified", "resource_type=thing", "created_after=yesterday", "q=%20", "q=%00"]
)
async def test_what_cannot_be_asked(clients: dict[str, httpx2.AsyncClient], query: str) -> None:
    assert (await clients["ada"].get(f"/v1/audit/events?{query}")).status_code in (400, 422)


async def test_one_event_and_its_proof(db: Database, clients: dict[str, httpx2.AsyncClient]) -> None:
    mine, foreign = [(await read(clients["admin"], q=word))[0]["id"] for word in ("tsk_0", "tsk_1")]
    shown = (await clients["ada"].get(f"/v1/audit/events/{mine}")).json()
    assert json.loads(shown["diff_object"]["new_object"]) == {"id": "tsk_0"}
    proof = f"/v1/audit/events/{mine}/proof"
    assert (await clients["ada"].get(proof)).json()["code"] == "audit_event_not_sealed"
    await sealing.Sealer(db).run_once()
    proved = (await clients["ada"].get(proof)).json()
    assert mine in proved["event"]
    assert proved["seal"]["number"] == 1
    for path in (f"/v1/audit/events/{foreign}", f"/v1/audit/events/{foreign}/proof", "/v1/audit/events/x"):
        assert (await clients["ada"].get(path)).json()["code"] == "audit_event_not_found"
    assert (await clients["admin"].get(f"/v1/audit/events/{foreign}")).status_code == 200


async def test_an_export_streams_what_the_list_shows(clients: dict[str, httpx2.AsyncClient]) -> None:
    reply = await clients["ada"].get("/v1/audit/export")
    assert reply.headers["Content-Type"] == "application/x-ndjson"
    assert things([json.loads(line) for line in reply.text.splitlines()]) == ["tsk_4", "tsk_2", "tsk_0"]
    reply = await clients["admin"].get("/v1/audit/export?format=csv&resource_type=task&user_id=" + BEA)
    assert reply.headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
    assert [row["resource_id"] for row in csv.DictReader(io.StringIO(reply.text))] == ["tsk_5", "tsk_3", "tsk_1"]
    looks = await read(clients["admin"], q="*", action="read", created_before="2100-01-01T00:00:00Z")
    assert looks[-1]["data"] == {"format": "csv", "resource_type": "task", "user_id": BEA, "verb": "export"}
    assert (await clients["ada"].get("/v1/audit/export?user_id=" + BEA)).status_code == 403

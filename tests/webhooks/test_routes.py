"""Endpoints and deliveries over HTTP. W-13."""

from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from headrace.database import Database
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from headrace.webhooks.routes import create_router
from headrace.webhooks.secrets import make_secret
from tests.edge import stand as edge
from tests.webhooks import stand
from tests.webhooks.receiver import receiving, says

ENDPOINTS = "/v1/webhooks/endpoints"
DELIVERIES = "/v1/webhooks/deliveries"


@pytest.fixture
def app(db: Database) -> FastAPI:
    return create_app(edge.services(db), WebConfig(), routers=[create_router(stand.HOOKS)])


async def make(client: httpx2.AsyncClient, url: str = "https://example.com/hooks", **body: Any) -> dict[str, Any]:
    reply = await client.post(ENDPOINTS, json={"name": "hook", "url": url, "subscribed_events": ["task.*"], **body})
    assert reply.status_code == 201, reply.text
    made: dict[str, Any] = reply.json()
    return made


async def test_the_life_of_an_endpoint(ada: httpx2.AsyncClient, db: Database) -> None:
    made = await make(ada, task_types=["IMAGE"], allow_ips=["1.2.3.4"], max_retries=3)
    assert made["secret"].startswith("whsec_")
    assert made["secret"].rstrip("=").endswith(made["secret_hint"][1:])
    path = f"{ENDPOINTS}/{made['id']}"
    read = await ada.get(path)
    assert "secret" not in read.json()
    assert (read.headers["ETag"], read.json()["allow_ips"]) == ('"0"', ["1.2.3.4/32"])

    changed = await ada.patch(path, json={"name": "other", "task_types": None}, headers={"If-Match": '"0"'})
    assert (changed.json()["name"], changed.json()["task_types"], changed.headers["ETag"]) == ("other", None, '"1"')
    stale = await ada.patch(path, json={"name": "third"}, headers={"If-Match": '"0"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
    same = await ada.patch(path, json={"name": "other"})
    assert same.headers["ETag"] == '"1"'

    assert (await ada.post(f"{path}/pause")).json()["status_reason"] == "by_hand"
    refused = await ada.post(f"{path}/test")
    assert (refused.status_code, refused.json()["code"]) == (409, "webhook_endpoint_not_active")
    assert (await ada.post(f"{path}/resume")).json()["status"] == "ACTIVE"
    rotated = (await ada.post(f"{path}/rotate-secret")).json()  # without a body it was refused with 422
    assert rotated["secret"] != made["secret"]
    assert rotated["secret_rotated_at"] is not None

    taken = await ada.post(ENDPOINTS, json={"name": "x", "url": made["url"], "subscribed_events": ["*"]})
    assert (taken.status_code, taken.json()["code"]) == (409, "webhook_url_taken")
    assert (await ada.delete(path)).status_code == 204
    assert (await ada.get(path)).status_code == 404
    assert (await ada.get(ENDPOINTS)).json()["items"] == []
    actions = await db.fetch_alone(
        "SELECT action, resource::text, diff_object::text FROM headrace.audit_events "
        "WHERE resource_type = 'webhookEndpoint' ORDER BY seq",
    )
    assert [row["action"] for row in actions] == ["created", "updated", "disabled", "enabled", "updated", "deleted"]
    assert "example.com" not in str(actions)  # addresses often are secrets themselves
    assert made["secret"] not in str(actions)


async def test_what_is_wrong_is_said(ada: httpx2.AsyncClient) -> None:
    good = {"name": "hook", "url": "https://example.com/", "subscribed_events": ["*"]}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"url": "http://10.0.0.1/"}, "webhook_url_refused"),
        ({"url": "https://user:pw@example.com/"}, "webhook_url_refused"),
        ({"subscribed_events": ["Task.Created"]}, "webhook_endpoint_invalid"),
        ({"subscribed_events": ["task.*.x"]}, "webhook_endpoint_invalid"),
        ({"subscribed_events": ["task.suceeded"]}, "webhook_endpoint_invalid"),
        ({"subscribed_events": ["tsk.*"]}, "webhook_endpoint_invalid"),
        ({"allow_ips": ["10.0.0.1/8"]}, "webhook_endpoint_invalid"),
        ({"secret": "whsec_c2hvcnQ="}, "webhook_secret_invalid"),
        ({"timeout_ms": 10}, "invalid_request"),
        ({"max_retries": 11}, "invalid_request"),
        ({"subscribed_events": []}, "invalid_request"),
        ({"nonsense": 1}, "invalid_request"),
    ]
    for wrong, code in cases:
        reply = await ada.post(ENDPOINTS, json={**good, **wrong})
        assert reply.status_code == 400 or code == "invalid_request", reply.text
        assert reply.is_client_error
        if code != "invalid_request":
            assert reply.json()["code"] == code
    wide = await ada.post(ENDPOINTS, json={**good, "every_user": True})
    assert (wide.status_code, wide.json()["code"]) == (403, "admin_only")


async def test_a_repeated_request_makes_one_endpoint_and_shows_one_secret(
    ada: httpx2.AsyncClient, db: Database
) -> None:
    body = {"name": "hook", "url": "https://example.com/", "subscribed_events": ["*"]}
    headers = {"Idempotency-Key": "once"}
    first, second = [await ada.post(ENDPOINTS, json=body, headers=headers) for _ in range(2)]
    assert first.json() == second.json()
    assert second.headers["Idempotency-Replayed"] == "true"
    kept = await db.fetch_alone("SELECT response_json::text AS answer FROM headrace.idempotency_keys")
    assert first.json()["secret"] not in kept[0]["answer"]


async def test_a_secret_of_ones_own_is_kept_as_it_is(ada: httpx2.AsyncClient) -> None:
    mine = make_secret().text
    assert (await make(ada, secret=mine))["secret"] == mine


async def test_others_are_as_good_as_none(
    ada: httpx2.AsyncClient, eve: httpx2.AsyncClient, root: httpx2.AsyncClient
) -> None:
    made = await make(ada)
    delivery = (await ada.post(f"{ENDPOINTS}/{made['id']}/test")).json()
    for method, path in (
        ("GET", f"{ENDPOINTS}/{made['id']}"),
        ("DELETE", f"{ENDPOINTS}/{made['id']}"),
        ("POST", f"{ENDPOINTS}/{made['id']}/pause"),
        ("GET", f"{ENDPOINTS}/{made['id']}/statistics"),
        ("GET", f"{DELIVERIES}/{delivery['id']}"),
        ("POST", f"{DELIVERIES}/{delivery['id']}/resend"),
    ):
        assert (await eve.request(method, path)).status_code == 404, path
    assert (await eve.get(f"{DELIVERIES}?endpoint_id={made['id']}")).json()["items"] == []
    assert (await eve.get(f"{ENDPOINTS}?user_id=*")).status_code == 403
    assert len((await root.get(f"{ENDPOINTS}?user_id=*")).json()["items"]) == 1
    assert len((await root.get(f"{DELIVERIES}?user_id=*")).json()["items"]) == 1
    assert (await root.get(f"{ENDPOINTS}/{made['id']}")).status_code == 200


async def test_no_more_endpoints_than_allowed(db: Database) -> None:
    from headrace.webhooks.errors import TooManyEndpoints
    from headrace.webhooks.model import EndpointConfig, EndpointSpec
    from headrace.webhooks.service import Webhooks, create_endpoint

    ada = await stand.make_user(db, "ada")
    few = Webhooks(stand.HOOKS.keyring, stand.LOCAL, EndpointConfig(most=2))
    for number in range(3):
        spec = EndpointSpec("hook", f"https://example.com/{number}", ("*",))
        if number < 2:
            async with db.transaction() as tx:
                await create_endpoint(tx, few, ada, spec)
        else:
            with pytest.raises(TooManyEndpoints):
                async with db.transaction() as tx:
                    await create_endpoint(tx, few, ada, spec)


async def test_deliveries_are_listed_read_and_sent_again(ada: httpx2.AsyncClient, db: Database) -> None:
    async with receiving(says(500, body="no")) as receiver:
        made = await make(ada, receiver.url, max_retries=0)
        path = f"{ENDPOINTS}/{made['id']}"
        for _ in range(3):
            tested = await ada.post(f"{path}/test")
            assert tested.status_code == 201
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
        first = (await ada.get(f"{DELIVERIES}?limit=2")).json()
        rest = (await ada.get(f"{DELIVERIES}?limit=2&cursor={first['next_cursor']}")).json()
        listed = first["items"] + rest["items"]
        assert [item["status"] for item in listed] == ["DEAD"] * 3
        assert "request_body" not in listed[0]
        whole = (await ada.get(f"{DELIVERIES}/{listed[0]['id']}")).json()
        assert (whole["response_body"], whole["request_body"]["type"]) == ("no", "webhook.test")
        assert (await ada.get(f"{DELIVERIES}?status=SUCCEEDED")).json()["items"] == []
        assert len((await ada.get(f"{DELIVERIES}?event_id={whole['event_id']}")).json()["items"]) == 1
        assert (await ada.get(f"{DELIVERIES}/whe_nonsense")).status_code == 404

        again = await ada.post(f"{DELIVERIES}/{whole['id']}/resend")
        assert (again.status_code, again.json()["attempt"]) == (201, 2)
        busy = await ada.post(f"{DELIVERIES}/{whole['id']}/resend")
        assert (busy.status_code, busy.json()["code"]) == (409, "webhook_delivery_under_way")
        resent = await ada.post(f"{path}/resend", json={"since": made["created_at"]})
        assert resent.json() == {"resent": 2, "more": False}
        receiver.answer = says(204)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
        figures = (await ada.get(f"{path}/statistics")).json()
        assert (figures["attempts"], figures["successes"], figures["failures"], figures["waiting"]) == (6, 3, 3, 0)
        assert figures["success_rate"] == 0.5
        assert figures["consecutive_failures"] == 0
        assert figures["last_error"].startswith("HTTP 500")

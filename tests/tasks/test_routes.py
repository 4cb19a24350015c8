"""Tasks over HTTP: what is sent, what is answered, and who is let in."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from headrace.tasks import live
from headrace.tasks.catalog import StoredCatalog, declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Fatal
from headrace.tasks.routes import create_router
from headrace.tasks.service import Tasks
from headrace.tasks.submit import SubmitConfig, Submitter
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand
from tests.open_types import UNCAPPED
from tests.tasks.conftest import Bench
from tests.tasks.people import have_labels, told, trail

FACES = "\N{GRINNING FACE}" * 64


class Order(BaseModel):
    pages: int


@pytest.fixture
async def bench(bench: Bench) -> Bench:
    """A worker's types are known to the database; the API has none of the code."""

    @bench.registry.task("report.build", max_attempts=4)
    async def build(context: TaskContext, order: Order) -> dict[str, Any]:
        """Builds a report."""
        async with context.step("render"):
            await context.log("rendering")
        return {"url": f"/reports/{order.pages}"}

    @bench.registry.task("broken", max_attempts=1)
    async def broken(context: TaskContext, payload: Any) -> None:
        raise Fatal("It never works.")

    @bench.registry.task("anything")
    async def anything(context: TaskContext, payload: Any) -> None: ...

    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    return bench


@pytest.fixture
async def app(bench: Bench) -> AsyncIterator[FastAPI]:
    catalog = StoredCatalog()
    submitter = Submitter(catalog, bench.followers, SubmitConfig(payload_limit=2000))
    async with live.open_watch(bench.db) as watch:
        router = create_router(Tasks(submitter, catalog, bench.followers, UNCAPPED), watch)
        yield create_app(stand.services(bench.db), WebConfig(), routers=[router])


async def declare_queues(bench: Bench) -> None:
    await bench.db.fetch_alone("INSERT INTO headrace.queues (name) VALUES ('slow'), ('fast'), ($1)", FACES)


def own_id(client: httpx2.AsyncClient) -> str:
    return client.headers["Authorization"].removeprefix("Bearer ").partition(",")[0]


async def submit(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    reply = await client.post("/v1/tasks", json={"type": "anything", **body})
    assert reply.status_code == 201, reply.text
    task: dict[str, Any] = reply.json()
    assert task["created_at"] <= task["queued_at"]
    return task


async def test_submit_wait_and_read(bench: Bench, ada: httpx2.AsyncClient) -> None:  # D-02
    await declare_queues(bench)
    run_at = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    body = {
        "type": "report.build",
        "payload": {"pages": 3},
        "title": "March",
        "priority": 7,
        "queue": "slow",
        "run_at": run_at.isoformat(),
        "max_attempts": 2,
        "timeout_seconds": 90,
        "limit_key": "k",
        "labels": {"gpu": "a100"},
    }
    await have_labels(bench.db, gpu="a100")
    reply = await ada.post("/v1/tasks", json=body)
    assert reply.status_code == 201
    task = reply.json()
    for name in body.keys() - {"run_at", "limit_key"}:
        assert task[name] == body[name], name
    assert task["limit_key"] == f"{own_id(ada)}/k"
    assert datetime.fromisoformat(task["run_at"]) == run_at
    assert (task["status"], task["user_id"], task["version"]) == ("QUEUED", own_id(ada), 0)
    assert (reply.headers["Location"], reply.headers["ETag"]) == (f"/v1/tasks/{task['id']}", '"0"')

    async with bench.working(labels={"gpu": "a100"}):
        await bench.over(task["id"])
    reply = await ada.get(reply.headers["Location"])
    done = reply.json()
    assert (done["status"], done["result"], done["retries"]) == ("SUCCEEDED", {"url": "/reports/3"}, 0)
    assert (done["progress"], done["attempt"], done["current_step"]) == (100, 1, "render")
    assert reply.headers["ETag"] == f'"{done["version"]}"'

    logs = (await ada.get(f"/v1/tasks/{task['id']}/logs")).json()["items"]
    assert [(line["status"], line["message"]) for line in logs] == [("LOG", "rendering"), ("SUCCEEDED", None)]
    (step,) = (await ada.get(f"/v1/tasks/{task['id']}/steps")).json()["items"]
    assert (step["name"], step["status"]) == ("render", "SUCCEEDED")
    why = (await ada.get(f"/v1/tasks/{task['id']}/why")).json()
    assert (why["status"], why["reasons"][0]["code"]) == ("SUCCEEDED", "over")


async def test_what_is_left_out_is_as_the_type_says(ada: httpx2.AsyncClient) -> None:
    task = (await ada.post("/v1/tasks", json={"type": "report.build", "payload": {"pages": 1}})).json()
    assert (task["title"], task["queue"], task["max_attempts"], task["labels"]) == ("report.build", "default", 4, {})


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"type": "nobody.knows"}, 400, "unknown_task_type"),
    ({"type": "IMAGE"}, 400, "unknown_task_type"),
    ({"payload": {"pages": "many"}}, 400, "payload_invalid"),
    ({"payload": {}}, 400, "payload_invalid"),
    ({"payload": {"pages": 1, "more": "x" * 3000}}, 400, "payload_too_large"),
    ({"payload": {"pages": 1, "text": "\0"}}, 400, "unstorable_text"),
    ({"title": "\0"}, 400, "unstorable_text"),
    ({"title": ""}, 422, "validation_failed"),
    ({"title": "x" * 256}, 422, "validation_failed"),
    ({"queue": "x" * 65}, 422, "validation_failed"),
    ({"limit_key": "x" * 227}, 422, "validation_failed"),
    ({"priority": 1_000_001}, 422, "validation_failed"),
    ({"max_attempts": 0}, 422, "validation_failed"),
    ({"timeout_seconds": 0}, 422, "validation_failed"),
    ({"run_at": "2026-03-01T08:00:00"}, 422, "validation_failed"),
    ({"run_at": "0001-01-01T00:00:00+14:00"}, 422, "validation_failed"),
    ({"run_at": "0001-01-01T00:00:00Z"}, 400, "task_invalid"),
    ({"run_at": "9999-12-31T23:59:59.999999Z"}, 400, "task_invalid"),
    ({"labels": {"gpu": 1}}, 422, "validation_failed"),
    ({"labels": {"gpu": "x" * 64}}, 422, "validation_failed"),
    ({"labels": {str(number): "x" for number in range(9)}}, 422, "validation_failed"),
    ({"colour": "red"}, 422, "validation_failed"),
]


async def test_only_an_administrator_submits_for_somebody_else(
    ada: httpx2.AsyncClient, eve: httpx2.AsyncClient, root: httpx2.AsyncClient
) -> None:
    refused = await eve.post("/v1/tasks", json={"type": "anything", "user_id": own_id(ada)})
    assert (refused.status_code, refused.json()["code"]) == (403, "admin_only")
    assert (await submit(eve, user_id=own_id(eve)))["user_id"] == own_id(eve)
    assert (await submit(root, user_id=own_id(ada)))["user_id"] == own_id(ada)
    nobody = await root.post("/v1/tasks", json={"type": "anything", "user_id": "u_01h455vb4pex5vsknk084sn02q"})
    assert (nobody.status_code, nobody.json()["code"]) == (400, "task_invalid"), nobody.text


async def test_what_submitting_refuses(ada: httpx2.AsyncClient, subtests: pytest.Subtests) -> None:
    for change, status, code in REFUSED:
        with subtests.test(str(change)[:60]):
            reply = await ada.post("/v1/tasks", json={"type": "report.build", "payload": {"pages": 1}} | change)
            problem = reply.json()
            assert (reply.status_code, problem["code"]) == (status, code), problem
            if code == "payload_invalid":
                assert "pages" in problem["detail"]
                assert problem["details"]["fields"] == ["pages"]
            if code == "validation_failed":
                assert next(iter(change)) in problem["errors"][0]["field"]
            assert (await ada.get("/v1/tasks")).json()["items"] == []


async def test_the_largest_labels_and_names_can_be_stored(bench: Bench, ada: httpx2.AsyncClient) -> None:
    await declare_queues(bench)
    labels = {f"{number}" + "k" * 62: "v" * 63 for number in range(8)}
    await have_labels(bench.db, **labels)
    task = await submit(ada, labels=labels, limit_key="\N{GRINNING FACE}" * 226, queue=FACES)
    assert task["labels"] == labels


async def test_a_payload_that_is_nested_without_end_is_refused(ada: httpx2.AsyncClient) -> None:
    body = '{"type": "anything", "payload": ' + "[" * 5000 + "]" * 5000 + "}"
    reply = await ada.post("/v1/tasks", content=body, headers={"Content-Type": "application/json"})
    assert (reply.status_code, reply.json()["code"]) == (400, "invalid_json")


async def test_one_key_gives_one_task_under_load(bench: Bench, ada: httpx2.AsyncClient) -> None:  # D-06, W-15
    async def send() -> httpx2.Response:
        while True:
            reply = await ada.post("/v1/tasks", json={"type": "anything"}, headers={"Idempotency-Key": "k1"})
            if reply.status_code != 409:
                return reply
            await asyncio.sleep(0.05)

    replies = await asyncio.gather(*(send() for _ in range(20)))
    assert {reply.status_code for reply in replies} == {201}
    assert len({reply.json()["id"] for reply in replies}) == 1
    assert len((await ada.get("/v1/tasks")).json()["items"]) == 1
    other = await ada.post("/v1/tasks", json={"type": "broken"}, headers={"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len(await trail(bench.db, "created")) == 1


async def test_a_batch_is_all_or_nothing(bench: Bench, ada: httpx2.AsyncClient) -> None:
    good = {"type": "report.build", "payload": {"pages": 1}}
    reply = await ada.post("/v1/tasks/batch", json={"tasks": [good] * 1000})
    assert reply.status_code == 201
    assert len(set(reply.json()["ids"])) == 1000
    for bad, code in (
        ({"type": "report.build", "payload": {"pages": "many"}}, "payload_invalid"),
        ({"type": "nobody.knows"}, "unknown_task_type"),
    ):
        reply = await ada.post("/v1/tasks/batch", json={"tasks": [*[good] * 6, bad, good]})
        problem = reply.json()
        assert (reply.status_code, problem["code"], problem["details"]["index"]) == (400, code, 6)
    reply = await ada.post("/v1/tasks/batch", json={"tasks": [good, {**good, "priority": "high"}]})
    assert (reply.status_code, reply.json()["errors"][0]["field"]) == (422, "body.tasks.1.priority")
    for tasks in ([], [good] * 1001):
        assert (await ada.post("/v1/tasks/batch", json={"tasks": tasks})).status_code == 422
    async with bench.db.transaction() as tx:
        assert await tx.fetchval("SELECT count(*) FROM headrace.tasks") == 1000


async def test_lists_are_filtered_and_paged(bench: Bench, ada: httpx2.AsyncClient, eve: httpx2.AsyncClient) -> None:
    await declare_queues(bench)
    made = [(await submit(ada, queue="slow" if number % 2 else "fast"))["id"] for number in range(7)]
    await submit(eve)
    await ada.post(f"/v1/tasks/{made[0]}/cancel")
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await ada.get("/v1/tasks", params={"limit": 3, **({"cursor": cursor} if cursor else {})})).json()
        seen += [task["id"] for task in page["items"]]
        cursor = page["next_cursor"]
    assert seen == made[::-1]
    assert "payload" not in page["items"][0]

    async def ids_of(**params: Any) -> list[str]:
        reply = await ada.get("/v1/tasks", params=params)
        assert reply.status_code == 200, reply.text
        return [task["id"] for task in reply.json()["items"]]

    assert await ids_of(status="CANCELED") == made[:1]
    assert await ids_of(status=["CANCELED", "QUEUED"]) == made[::-1]
    assert await ids_of(queue="slow") == made[5::-2]
    await bench.db.fetch_alone(
        "UPDATE headrace.tasks SET task_type = 'headrace.tidy' WHERE id = $1 RETURNING id", made[6]
    )
    assert await ids_of(internal=False) == made[5::-1]  # without those of the product itself
    assert await ids_of(internal=False, status="QUEUED", queue="fast") == [made[4], made[2]]
    assert await ids_of(type="broken") == []
    middle = (await bench.row(made[3]))["created_at"]
    assert await ids_of(created_after=middle.isoformat()) == made[6:2:-1]
    assert await ids_of(created_before=middle.isoformat()) == made[2::-1]
    reply = await ada.get("/v1/tasks", params={"limit": 1})
    reply = await ada.get("/v1/tasks", params={"cursor": reply.json()["next_cursor"], "status": "QUEUED"})
    assert (reply.status_code, reply.json()["code"]) == (400, "invalid_cursor")
    assert (await ada.get("/v1/tasks", params={"status": "BUSY"})).status_code == 422


async def test_everyone_reaches_their_own_and_administrators_all(
    bench: Bench, ada: httpx2.AsyncClient, eve: httpx2.AsyncClient, root: httpx2.AsyncClient
) -> None:
    task = await submit(ada)
    missing = "tsk_01h455vb4pex5vsknk084sn02q"
    for method, path in (
        ("GET", ""),
        ("GET", "/logs"),
        ("GET", "/steps"),
        ("GET", "/why"),
        ("GET", "/events"),
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("DELETE", ""),
    ):
        answers = [await eve.request(method, f"/v1/tasks/{task_id}{path}") for task_id in (task["id"], missing)]
        assert {answer.status_code for answer in answers} == {404}
        bodies = [{**answer.json(), "instance": "", "request_id": ""} for answer in answers]
        assert bodies[0] == bodies[1]
    reply = await eve.get("/v1/tasks", params={"user_id": own_id(ada)})
    assert (reply.status_code, reply.json()["code"]) == (403, "admin_only")

    assert (await root.get(f"/v1/tasks/{task['id']}")).json()["id"] == task["id"]
    assert (await root.get("/v1/tasks")).json()["items"] == []
    for user_id in (own_id(ada), "*"):
        (seen,) = (await root.get("/v1/tasks", params={"user_id": user_id})).json()["items"]
        assert seen["id"] == task["id"]
    assert (await root.post(f"/v1/tasks/{task['id']}/cancel")).json()["status"] == "CANCELED"
    assert [row["action"] for row in await trail(bench.db)] == ["created", "read", "read", "read", "updated"]


async def test_cancel_retry_and_delete_heed_if_match(bench: Bench, ada: httpx2.AsyncClient) -> None:  # W-09
    task = await submit(ada, type="broken")
    path = f"/v1/tasks/{task['id']}"
    stale = await ada.post(f"{path}/cancel", headers={"If-Match": '"7"'})
    assert (stale.status_code, stale.json()["code"], stale.json()["details"]) == (
        412,
        "precondition_failed",
        {"version": 0},
    )
    canceled = await ada.post(f"{path}/cancel", headers={"If-Match": '"0"'})
    assert (canceled.status_code, canceled.json()["status"], canceled.headers["ETag"]) == (200, "CANCELED", '"1"')
    assert (await ada.post(f"{path}/cancel")).json() == canceled.json()
    assert (await ada.post(f"{path}/retry", headers={"If-Match": '"0"'})).status_code == 412
    retried = await ada.post(f"{path}/retry", headers={"If-Match": '"1"'})
    assert (retried.json()["status"], retried.headers["ETag"]) == ("QUEUED", '"2"')
    refused = await ada.delete(path)
    assert (refused.status_code, refused.json()["code"]) == (409, "task_not_over")
    refused = await ada.post(f"{path}/retry")
    assert (refused.status_code, refused.json()["code"]) == (409, "task_not_over")
    async with bench.working():
        await bench.over(task["id"])
    refused = await ada.post(f"{path}/cancel")
    assert (refused.status_code, refused.json()["code"]) == (409, "task_over")
    assert (await ada.delete(path, headers={"If-Match": '"2"'})).status_code == 412
    assert (await ada.delete(path)).status_code == 204
    assert (await ada.get(path)).status_code == 404
    assert await told(bench.db, task["id"]) == []  # no outbox on this bench


async def test_api_keys_need_the_scopes(app: FastAPI, bench: Bench, ada: httpx2.AsyncClient) -> None:
    task = await submit(ada)
    reads = ["/v1/tasks", f"/v1/tasks/{task['id']}", "/v1/queues", "/v1/task-types"]
    async with stand.client(app, Authorization=f"Bearer {own_id(ada)},tasks:read") as reader:
        assert {(await reader.get(path)).status_code for path in reads} == {200}
        for reply in (
            await reader.post("/v1/tasks", json={"type": "anything"}),
            await reader.post(f"/v1/tasks/{task['id']}/cancel"),
            await reader.delete(f"/v1/tasks/{task['id']}"),
        ):
            assert (reply.status_code, reply.json()["code"]) == (403, "scope_missing")
    async with stand.client(app, Authorization=f"Bearer {own_id(ada)},tasks:write") as writer:
        assert {(await writer.get(path)).status_code for path in reads} == {403}
        assert (await writer.post(f"/v1/tasks/{task['id']}/cancel")).status_code == 200


async def test_queues_are_seen_by_all_and_ruled_by_administrators(
    bench: Bench, ada: httpx2.AsyncClient, eve: httpx2.AsyncClient, root: httpx2.AsyncClient
) -> None:
    await submit(ada)
    # Whose work it is that waits is nobody else's business, and neither is how much.
    (others,) = (await eve.get("/v1/queues")).json()["items"]
    assert (others["name"], others["waiting"], others["oldest_waiting_seconds"]) == ("default", 0, None)
    (everything,) = (await root.get("/v1/queues")).json()["items"]
    assert everything["waiting"] == 1
    (queue,) = (await ada.get("/v1/queues")).json()["items"]
    assert (queue["name"], queue["waiting"], queue["running"], queue["delayed"]) == ("default", 1, 0, 0)
    assert (queue["paused_at"], queue["max_running"], queue["exact"]) == (None, None, True)
    for reply in (
        await ada.post("/v1/queues/default/pause"),
        await ada.post("/v1/queues/default/resume"),
        await ada.put("/v1/queues/default/limit", json={"max_running": 1}),
        await ada.get("/v1/workers"),
    ):
        assert (reply.status_code, reply.json()["code"]) == (403, "admin_only")
    unknown = await root.post("/v1/queues/nosuch/pause")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "queue_not_found")
    unknown = await root.put("/v1/queues/nosuch/limit", json={"max_running": 1})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "queue_not_found")
    assert "?create=true" in unknown.json()["detail"]
    assert "nosuch" not in [queue["name"] for queue in (await root.get("/v1/queues")).json()["items"]]
    made = await root.put("/v1/queues/planned/limit?create=true", json={"max_running": 1})
    assert (made.status_code, made.json()["max_running"]) == (200, 1)
    paused = await root.post("/v1/queues/default/pause")
    assert paused.json()["paused_at"] is not None
    assert (await root.post("/v1/queues/default/resume", headers={"If-Match": '"9"'})).status_code == 412
    assert (await root.post("/v1/queues/default/resume")).json()["paused_at"] is None
    limited = await root.put("/v1/queues/default/limit", json={"max_running": 2})
    assert (limited.json()["max_running"], limited.headers["ETag"]) == (2, '"3"')
    assert (await root.put("/v1/queues/default/limit", json={"max_running": 0})).status_code == 422
    assert (await root.put(f"/v1/queues/{'x' * 65}/limit", json={"max_running": 1})).status_code == 422
    assert (await root.put("/v1/queues/default/limit", json={"max_running": None})).json()["max_running"] is None


async def test_workers_and_types_are_listed(bench: Bench, root: httpx2.AsyncClient) -> None:
    async with bench.working(queues=["default"], labels={"zone": "a"}) as worker:
        async with asyncio.timeout(60):
            while not (items := (await root.get("/v1/workers")).json()["items"]):
                await asyncio.sleep(0.02)
        (seen,) = items
        assert (seen["id"], seen["alive"], seen["queues"], seen["labels"]) == (
            worker.identity.id,
            True,
            ["default"],
            {"zone": "a"},
        )
        types = (await root.get("/v1/task-types")).json()["items"]
    assert [each["name"] for each in types] == ["anything", "broken", "report.build"]
    assert (types[2]["workers"], types[2]["description"]) == (1, "Builds a report.")
    assert types[2]["payload_schema"]["required"] == ["pages"]
    assert (await root.get("/v1/workers")).json()["items"] == []


async def test_the_description_has_every_route(app: FastAPI) -> None:
    paths = app.openapi()["paths"]
    assert {(path, method) for path, methods in paths.items() for method in methods} == {
        ("/v1/tasks", "get"),
        ("/v1/tasks", "post"),
        ("/v1/tasks/batch", "post"),
        ("/v1/tasks/{task_id}", "get"),
        ("/v1/tasks/{task_id}", "delete"),
        ("/v1/tasks/{task_id}/logs", "get"),
        ("/v1/tasks/{task_id}/steps", "get"),
        ("/v1/tasks/{task_id}/why", "get"),
        ("/v1/tasks/{task_id}/cancel", "post"),
        ("/v1/tasks/{task_id}/retry", "post"),
        ("/v1/tasks/{task_id}/events", "get"),
        ("/v1/queues", "get"),
        ("/v1/queues/{name}/pause", "post"),
        ("/v1/queues/{name}/resume", "post"),
        ("/v1/queues/{name}/limit", "put"),
        ("/v1/workers", "get"),
        ("/v1/task-types", "get"),
    }
    events = paths["/v1/tasks/{task_id}/events"]["get"]["responses"]
    assert list(events["200"]["content"]) == ["text/event-stream"]

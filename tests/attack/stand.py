"""The whole API in this process with a victim who has one of everything, for attackers to reach for."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI

from headrace.database import Database
from headrace.removal.messages import failure
from headrace.removal.order import FailureCode, Names, RemovalOrder, Stage
from headrace.removal.service.task_types import removal_types
from headrace.tasks.context import TaskContext
from tests.assets.stand import png
from tests.attack.routes import Route, Unclassified
from tests.web.recipes import NOT_CHANGES, RECIPES, Sent
from tests.web.world import World, whole_api

# Tables and columns that a request may move though it is refused: when somebody was last seen, how often they asked.
VOLATILE_TABLES = {"rate_limits", "login_throttles", "audit_events", "workers"}
VOLATILE_COLUMNS = ["last_seen_at", "last_used_at", "updated_at"]


async def _locked(world: World) -> Sent:
    token = (await world.send("POST", "/v1/locks", {"key": "victim's"})).json()["token"]
    return Sent(body={"key": "victim's", "token": token})


async def _preview(world: World) -> Sent:
    return Sent(body={"interval": 60})


async def _unread(world: World) -> Sent:
    return Sent({"notification_id": await world.notification()})


async def _read_all(world: World) -> Sent:
    return Sent(body={})


async def _upload(world: World) -> Sent:
    return Sent(body={"name": "cat.png", "size_bytes": 100})


async def _part(world: World) -> Sent:
    return Sent({"upload_id": await world.upload(), "number": "1"}, png())


async def _aborted(world: World) -> Sent:
    return Sent({"upload_id": await world.upload()})


async def _signed(world: World) -> Sent:
    return Sent({"upload_id": await world.upload()}, {"numbers": [1]})


async def _token(world: World) -> str:
    link = await world.send("POST", f"/v1/assets/{await world.asset()}/links", {})
    return str(link.json()["url"].rpartition("/")[2])


async def _result(world: World) -> Sent:
    return Sent({"task_id": await world.result()})


async def _result_page(world: World) -> Sent:
    return Sent({"task_id": await world.result(), "page": "1"})


async def _archived(world: World) -> Sent:
    return Sent(query={"task_id": await world.result()})


class _HoldsBack:
    """Makes no result that is good enough, and leaves a picture of it."""

    def __init__(self, files: Path) -> None:
        self._files = files

    async def remove(self, context: TaskContext, _order: RemovalOrder) -> dict[str, Any]:
        name = f"step/{context.user_id}/{context.task_id}/0.held_back.jpg"
        (self._files / name).parent.mkdir(parents=True, exist_ok=True)
        (self._files / name).write_bytes(b"jpeg")
        async with context.step(Stage.INPAINTING) as step:
            step.detail = {"files": {str(Names.HELD_BACK): name}}
            raise failure(FailureCode.POOR_RESULT)

    async def detect(self, _context: TaskContext, _order: RemovalOrder) -> dict[str, Any]:
        raise NotImplementedError


async def _held_back(world: World) -> Sent:
    task_id = await world.removal()
    await world.worked(removal_types(_HoldsBack(world.files)), task_id)
    return Sent({"task_id": task_id})


async def _bulk(world: World) -> Sent:
    body = {"action": "cancel", "filter": {"ids": [await world.task()]}, "expected": 1}
    return Sent({"task_id": (await world.send("POST", "/v1/tasks/bulk", body)).json()["task_id"]})


async def _removal(world: World) -> Sent:
    return Sent({"task_id": await world.removal()})


async def _quoted(world: World) -> Sent:
    return Sent(body={"asset_ids": [await world.asset()]})


async def _forgotten(_world: World) -> Sent:
    return Sent(body={"login": "ada"})


async def _named_users(world: World) -> Sent:
    return Sent(query={"user_id": (await world.user())["id"]})


MORE_RECIPES = {
    "GET /v1/admin/users/names": _named_users,
    "POST /v1/auth/password/forgot": _forgotten,
    "GET /v1/tasks/bulk/{task_id}": _bulk,
    "POST /v1/locks/renew": _locked,
    "POST /v1/schedules/preview": _preview,
    "POST /v1/notifications/{notification_id}/read": _unread,
    "POST /v1/notifications/read-all": _read_all,
    "POST /v1/uploads": _upload,
    "PUT /v1/uploads/{upload_id}/parts/{number}": _part,
    "DELETE /v1/uploads/{upload_id}": _aborted,
    "POST /v1/uploads/{upload_id}/links": _signed,
    "GET /v1/tasks/{task_id}/result": _result,
    "GET /v1/tasks/{task_id}/result/content": _result,
    "GET /v1/tasks/{task_id}/result/pages/{page}": _result_page,
    "GET /v1/tasks/{task_id}/preview": _result,
    "GET /v1/tasks/{task_id}/compare": _result,
    "GET /v1/results/archive": _archived,
    "GET /v1/removals/{task_id}": _removal,
    "GET /v1/removals/{task_id}/held-back": _held_back,
    "POST /v1/removals/quote": _quoted,
}

# A row of the victim's for each name in the path of a route that reads.
Make = Callable[[World], Awaitable[str]]


async def _execution(world: World) -> str:
    run = (await world.send("POST", f"/v1/schedules/{await world.schedule()}/run")).json()
    return str(run["id"])


async def _session(world: World) -> str:
    return str((await world.send("GET", "/v1/sessions")).json()["items"][0]["id"])


async def _event(world: World) -> str:
    return str((await world.send("GET", "/v1/audit/events")).json()["items"][0]["id"])


async def _user(world: World) -> str:
    """Somebody whose account waits for its deletion, so that the routes about that find one."""
    user_id = str((await world.user())["id"])
    await world.send("POST", f"/v1/admin/users/{user_id}/deletion", {})
    return user_id


async def _config(world: World) -> str:
    await world.send("PUT", "/v1/admin/configs/features", {"value": {"beta": True}})
    return "features"


async def _risk(world: World) -> str:
    sent = await RECIPES["DELETE /v1/admin/risks/{risk_id}"](world)
    return sent.path["risk_id"]


async def _archive(world: World) -> str:
    return "1"  # there is none: archives are made by months that leave


async def _page(world: World) -> str:
    return "1"  # there is none: the victim's file is a picture


async def _order(world: World) -> str:
    return str((await world.order())["order"]["id"])


async def _subscription(world: World) -> str:
    return str((await world.order())["subscription"]["id"])


async def _outbox_event(world: World) -> str:
    sent = await RECIPES["POST /v1/admin/outbox/events/{outbox_event_id}/revive"](world)
    return sent.path["outbox_event_id"]


ROWS: dict[str, Make] = {
    "order_id": _order,
    "plan_id": World.plan,
    "subscription_id": _subscription,
    "api_key_id": World.api_key,
    "delivery_id": World.delivery,
    "endpoint_id": World.endpoint,
    "notification_id": World.notification,
    "outbox_event_id": _outbox_event,
    "archive_id": _archive,
    "entitlement_id": World.entitlement,
    "asset_id": World.asset,
    "event_id": _event,
    "execution_id": _execution,
    "key": _config,
    "page": _page,
    "risk_id": _risk,
    "session_id": _session,
    "task_id": World.task,
    "token": _token,
    "schedule_id": World.schedule,
    "upload_id": World.upload,
    "user_id": _user,
}
NEEDS_A_BUCKET = {"POST /v1/uploads/{upload_id}/links"}  # tests/assets/test_bucket.py has one
UNREADABLE = {"archive_id", "event_id", "page"}  # not there, or not sealed yet: the victim is refused as well


async def prepared(world: World, route: Route) -> Sent:
    """A request of the victim's to this route that would succeed."""
    recipe = RECIPES.get(route.name) or MORE_RECIPES.get(route.name)
    if recipe is not None:
        return await recipe(world)
    if route.changes:
        known = "NOT_CHANGES says that it changes nothing" if route.name in NOT_CHANGES else "it has no recipe"
        raise Unclassified(f"{route.name}: {known}: say in tests/attack/stand.py how to call it")
    missing = [name for name in route.parameters("path") if name not in ROWS]
    if missing:
        raise Unclassified(f"{route.name}: say in ROWS of tests/attack/stand.py how the victim gets a {missing[0]}")
    return Sent({name: await ROWS[name](world) for name in route.parameters("path")})


@dataclass(frozen=True, slots=True)
class Attacked:
    world: World
    app: FastAPI
    client: httpx2.AsyncClient  # carries nothing by itself; an error within the app is a 500, as for a real caller

    async def send(
        self, route: Route, sent: Sent, headers: Mapping[str, str], *, query: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        raw = sent.body if isinstance(sent.body, bytes) else sent.content
        body = {"json": sent.body} if raw is None else {"content": raw}
        return await self.client.request(
            route.method,
            route.path.format(**sent.path),
            headers={**sent.headers, **headers},
            params=query or sent.query,
            **body,
        )


@asynccontextmanager
async def attacked(database_url: str) -> AsyncIterator[Attacked]:
    many = {"api_rate_limit": 1_000_000, "api_rate_burst": 1_000_000, "login_free_failures": 1_000_000}
    async with whole_api(database_url, **many) as (world, app):
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False, client=("192.0.2.66", 4711))
        async with httpx2.AsyncClient(transport=transport, base_url="http://headrace.test") as client:
            yield Attacked(world, app, client)


TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = 'headrace'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
  AND relname <> ALL ($1) AND has_table_privilege(oid, 'SELECT')
ORDER BY relname
"""


class Contents:
    """What is in the tables, as a digest of each: a refused request leaves every one as it was."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._sql = ""

    async def read(self) -> dict[str, str]:
        if not self._sql:
            tables = [row["relname"] for row in await self._db.fetch_alone(TABLES, sorted(VOLATILE_TABLES))]
            self._sql = " UNION ALL ".join(
                f"SELECT '{table}' AS name, md5(string_agg(row, ',' ORDER BY row)) AS digest"
                f" FROM (SELECT (to_jsonb(t) - $1::text[])::text AS row FROM headrace.{table} AS t) AS rows"
                for table in tables
            )
        return {row["name"]: row["digest"] for row in await self._db.fetch_alone(self._sql, VOLATILE_COLUMNS)}


def but_for_ids(text: str, *ids: str) -> str:
    """An answer without what must differ between two: the ids that were asked for, and the request's own."""
    text = re.sub(r"req_[0-9a-z]{26}", "…", text)  # first: an id may be a mere number, which it may hold, too
    for each in ids:
        text = text.replace(each, "…")
    return text


def neighbour(row_id: str) -> str:
    """An id of the same form that nothing has."""
    return row_id[:-1] + ("0" if row_id[-1] != "0" else "1")


def facts_of(answer: httpx2.Response, *ids: str) -> tuple[Any, ...]:
    """What a caller can see of an answer."""
    ours = {name: value for name, value in answer.headers.items() if name.lower() not in TIMES}
    return answer.status_code, but_for_ids(answer.text, *ids), {k: but_for_ids(v, *ids) for k, v in ours.items()}


TIMES = {"x-request-id", "server-timing", "date", "ratelimit", "ratelimit-policy", "content-length"}

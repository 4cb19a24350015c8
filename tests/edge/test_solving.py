"""Routes that run by a plan answer as FastAPI answers: the same values, the same faults, in the same order."""

from typing import Annotated, Any

import httpx2
import pytest
from fastapi import Depends, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from headrace.database import Database
from headrace.edge import routing, solving
from headrace.edge.authorization import Anyone, SignedIn
from headrace.edge.idempotency import Once, idempotent
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.errors import Conflict
from headrace.tasks.routes import changes
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand

JSON = {"Content-Type": "application/json"}


class Body(BaseModel):
    name: Annotated[str, Field(min_length=2)]
    data: Any = None


async def _colour(colour: Annotated[str, Query(pattern="red|blue")] = "red") -> str:
    return colour


async def _twice(
    colour: Annotated[str, Depends(_colour)], mark: Annotated[str | None, Header(alias="X-Mark")] = None
) -> str:
    return f"{colour}{mark}"


async def _refuses(request: Request) -> None:
    if request.headers.get("X-Refuse"):
        raise Conflict("refused")


def routes() -> Router:
    made = Router(prefix="/v1", dependencies=[Depends(_refuses)])

    @made.post("/things/{number}", response_model=Body)
    async def make(
        number: Annotated[int, Path(ge=1)],
        body: Body,
        who: Anyone,
        colour: Annotated[str, Depends(_colour)],
        twice: Annotated[str, Depends(_twice)],
        must: Annotated[str, Header(alias="X-Must", max_length=3)],
        tags: Annotated[list[str] | None, Query()] = None,
    ) -> Response:
        return JSONResponse([number, body.model_dump(), who.request_method, colour, twice, must, tags], 201)

    @made.post("/once")
    async def keyed(
        body: Body, caller: SignedIn, db: Db, once: Annotated[Once, Depends(idempotent("once"))]
    ) -> Response:
        return JSONResponse([body.name, caller.user_id, once.key])

    return made


REQUESTS: list[dict[str, Any]] = [
    {"headers": {"X-Must": "a", "X-Mark": "m"}, "json": {"name": "ab"}},
    {"headers": {"X-Must": "a"}, "json": {"name": "ab"}, "params": {"colour": "blue", "tags": ["x", "y"]}},
    {"headers": {"X-Must": "a"}, "json": {"name": "ab", "data": [1, None, {"ü": 1.5}]}, "url": "/v1/things/0"},
    {"headers": {}, "json": {"name": "a"}, "url": "/v1/things/x"},
    {"headers": {"X-Must": "four"}, "json": {}, "params": {"colour": "green"}},
    {"headers": {"X-Must": "a", "X-Refuse": "1"}, "json": {}},
    {"headers": {"X-Must": "a", **JSON}, "content": b"{"},
    {"headers": {"X-Must": "a", **JSON}, "content": b'{"name": "\xff"}'},
    {"headers": {"X-Must": "a", **JSON}, "content": b"[" * 5000},
    {"headers": {"X-Must": "a", **JSON}, "content": b""},
    {"headers": {"X-Must": "a", **JSON}, "content": b"null"},
    {"headers": {"X-Must": "a", "Content-Type": "text/plain"}, "content": b'{"name": "ab"}'},
    {"headers": {"X-Must": "a", "Content-Type": "application/vnd.x+json; charset=utf-8"}, "content": b'{"name": "ab"}'},
    {"headers": {"X-Must": "a"}, "content": b'{"name": "ab"}'},
    {"headers": stand.AUTHORIZED, "json": {"name": "ab"}, "url": "/v1/once"},
    {"headers": {**stand.AUTHORIZED, "Idempotency-Key": "k"}, "json": {"name": "ab"}, "url": "/v1/once"},
    {"headers": {**stand.AUTHORIZED, "Idempotency-Key": "a b"}, "json": {}, "url": "/v1/once"},
    {"headers": {"Authorization": "Bearer nobody"}, "json": {"name": "a"}, "url": "/v1/once"},
    {"headers": {}, "content": b"{", "url": "/v1/once"},
]


@pytest.mark.parametrize("request_", REQUESTS)
async def test_a_planned_route_answers_as_fastapi_answers(
    db: Database, request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer() -> httpx2.Response:
        app = create_app(stand.services(db), WebConfig(), routers=[routes()])
        async with stand.client(app, **{"X-Request-Id": "same"}) as client:
            given = dict(request_)
            return await client.post(given.pop("url", "/v1/things/7"), **given)

    planned = await answer()
    monkeypatch.setattr(routing, "planned", lambda _: None)
    usual = await answer()
    assert planned.status_code == usual.status_code
    assert planned.json() == usual.json()
    different = {"ratelimit", "ratelimit-remaining", "ratelimit-reset"}
    assert {k: v for k, v in planned.headers.items() if k not in different} == {
        k: v for k, v in usual.headers.items() if k not in different
    }


def test_the_routes_that_submit_have_a_plan() -> None:
    for path in ("/tasks", "/tasks/batch"):
        (route,) = (each for each in changes.router if each.path == path and "POST" in (each.methods or ()))
        assert route.dependant is not None  # builds the route
        assert solving.planned(route) is not None


async def test_a_path_that_several_methods_share_answers_for_each(db: Database) -> None:
    """Lookup by path leaves methods, unknown paths and trailing slashes to the routes."""
    async with stand.client(stand.app(db), **stand.AUTHORIZED) as client:
        assert (await client.get("/v1/things")).status_code == 200
        assert (await client.post("/v1/things", json={"name": "a"})).status_code == 201
        refused = await client.delete("/v1/things")
        assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD, POST")
        assert (await client.get("/v1/things/")).status_code == 404

"""Routes are matched from the beginning and made ready by the first who comes."""

import inspect
from collections.abc import Iterator
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import Match

from headrace.database import Database
from headrace.edge.routing import Router
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand
from tests.web.world import whole_api


def waiting(app: FastAPI) -> list[str]:
    return [route.path for route in app.routes if isinstance(route, APIRoute) and "dependant" not in vars(route)]


def served(db: Database, *routers: Router) -> FastAPI:
    return create_app(stand.services(db), WebConfig(), routers=routers)


async def test_who_comes_to_one_route_waits_for_that_one_alone(no_db: Database) -> None:
    router = Router(prefix="/v1")

    @router.get("/near")
    async def near(number: int = 1) -> dict[str, int]:
        return {"number": number}

    @router.get("/far/{name}")
    async def far(name: str) -> dict[str, str]:
        return {"name": name}

    app = served(no_db, router)
    assert {"/v1/near", "/v1/far/{name}"} <= set(waiting(app))
    async with stand.client(app) as client:
        assert (await client.get("/v1/far/away")).json() == {"name": "away"}
        assert "/v1/near" in waiting(app)
        assert "/v1/far/{name}" not in waiting(app)
        assert (await client.get("/v1/near?number=two")).status_code == 422
        assert (await client.get("/v1/near?number=2")).json() == {"number": 2}
        assert (await client.delete("/v1/near")).headers["Allow"] == "GET, HEAD"


async def test_parts_lie_below_what_includes_them_and_behind_what_it_depends_on(no_db: Database) -> None:
    passed: list[str] = []

    def through(gate: str) -> Any:
        async def note() -> None:
            passed.append(gate)

        return Depends(note)

    part = Router(prefix="/doors", tags=["Doors"], dependencies=[through("part")])

    @part.get("/{number}", dependencies=[through("route")])
    async def door(number: int) -> dict[str, int]:
        return {"number": number}

    house = Router(prefix="/v1", dependencies=[through("house")])
    house.include(part)
    app = served(no_db, house)
    async with stand.client(app) as client:
        assert (await client.get("/v1/doors/7")).json() == {"number": 7}
    assert passed == ["house", "part", "route"]
    described = app.openapi()["paths"]["/v1/doors/{number}"]["get"]
    assert (described["tags"], described["operationId"]) == (["Doors"], "door")


async def test_no_request_waits_for_a_thread_to_find_out_what_it_depends_on(database_url: str) -> None:
    """Dependencies that are plain functions run in threads: two or three a request, and forty threads at work."""

    def below(dependant: Dependant) -> Iterator[Any]:
        for each in dependant.dependencies:
            yield each.call
            yield from below(each)

    async with whole_api(database_url) as (_, app):
        routes = [route for route in app.routes if isinstance(route, APIRoute)]
        calls = {call for route in routes for call in (route.endpoint, *below(route.dependant))}
    assert len(calls) > 100
    threaded = [call for call in calls if not any(map(inspect.iscoroutinefunction, (call, type(call).__call__)))]
    assert threaded == []


async def test_the_look_up_by_path_finds_what_the_order_of_routes_finds(database_url: str) -> None:
    """Paths without parameters are looked up first: no path with one that was declared before may match them."""
    async with whole_api(database_url) as (_, app):
        routes = [route for route in app.routes if isinstance(route, APIRoute)]
    exact = [(route, method) for route in routes if "{" not in route.path for method in route.methods or ()]
    assert len(exact) > 50
    for route, method in exact:
        scope = {"type": "http", "path": route.path, "method": method, "root_path": ""}
        first = next(each for each in routes if each.matches(scope)[0] is Match.FULL)
        assert first is route, f"{method} {route.path} is hidden by {first.path}"

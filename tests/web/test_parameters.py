"""A parameter or a field that a route does not have is refused, wherever it is sent."""

import pytest
from fastapi import Depends, FastAPI
from pydantic import BaseModel, ConfigDict, Field

from headrace.database import Database
from headrace.edge.paging import Page, Paging
from headrace.edge.routing import Router
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    weight: int = 1


class Thing(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    same_mark: bool = False
    kind: str = Field("any", alias="thing_kind")
    parts: list[Part] | None = None


@pytest.fixture
def app(no_db: Database) -> FastAPI:
    router = Router(prefix="/v1/things")

    def colour(colour: str | None = None) -> str | None:
        return colour

    @router.get("")
    async def list_things(paging: Paging, status: str | None = None, _: str | None = Depends(colour)) -> Page[str]:
        return Page(items=[status or "any"])

    @router.put("")
    async def put_thing(thing: Thing) -> str:
        return thing.kind

    return create_app(stand.services(no_db), WebConfig(), routers=[router])


async def test_what_is_misspelt_is_named_with_what_is_meant(app: FastAPI) -> None:
    async with stand.client(app) as client:
        assert (await client.get("/v1/things?status=a&limit=3&colour=red")).status_code == 200
        misspelt = await client.get("/v1/things?stauts=a")
        stray = await client.get("/v1/things", params={"zzz": 1})
    assert misspelt.status_code == stray.status_code == 422
    assert misspelt.json()["errors"] == [
        {"field": "query.stauts", "message": "There is no such parameter here: did you mean status?"}
    ]
    assert stray.json()["errors"][0]["message"].endswith("there are: colour, cursor, limit, status.")


async def test_a_misspelt_field_of_a_body_is_too(app: FastAPI) -> None:
    body = {"same_marks": True, "zzz": 1, "parts": [{"weigth": 2}]}
    async with stand.client(app) as client:
        refused = await client.put("/v1/things", json=body)
        right = await client.put("/v1/things", json={"same_mark": True, "parts": [{"weight": 2}]})
    assert (right.status_code, refused.status_code) == (200, 422), right.text
    assert {each["field"]: each["message"] for each in refused.json()["errors"]} == {
        "body.same_marks": "There is no such field here: did you mean same_mark?",
        "body.zzz": "There is no such field here: there are: parts, same_mark, thing_kind.",
        "body.parts.0.weigth": "There is no such field here: did you mean weight?",
    }

"""A parameter that a route does not have is refused, wherever it is sent."""

import pytest
from fastapi import APIRouter, Depends, FastAPI

from headrace.database import Database
from headrace.edge.paging import Page, Paging
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand


@pytest.fixture
def app(no_db: Database) -> FastAPI:
    router = APIRouter(prefix="/v1/things")

    def colour(colour: str | None = None) -> str | None:
        return colour

    @router.get("")
    async def list_things(paging: Paging, status: str | None = None, _: str | None = Depends(colour)) -> Page[str]:
        return Page(items=[status or "any"])

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

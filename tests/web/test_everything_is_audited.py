"""A-04: every route that changes something leaves an event. A new one that nobody has written down here fails."""

from fastapi import FastAPI

from headrace.outbox.catalogue import faults
from tests.web.recipes import NOT_CHANGES, RECIPES
from tests.web.world import World, whole_api

CHANGING = {"POST", "PUT", "PATCH", "DELETE"}
TOLD = "SELECT * FROM headrace.outbox_events WHERE payload_json <> '{}'"  # not dead events


def changing_operations(app: FastAPI) -> list[str]:
    paths = app.openapi()["paths"]
    return [f"{method.upper()} {path}" for path in paths for method in paths[path] if method.upper() in CHANGING]


async def test_every_route_that_changes_something_leaves_an_event(database_url: str) -> None:
    async with whole_api(database_url) as (world, app):
        operations = changing_operations(app)
        unknown = set(operations) - RECIPES.keys() - NOT_CHANGES.keys()
        assert not unknown, f"write down here how to call {unknown}, so that it is seen to be audited"
        assert not (RECIPES.keys() | NOT_CHANGES.keys()) - set(operations), "these are gone"
        silent = []
        for operation in operations:
            if operation in NOT_CHANGES:
                continue
            method, _, path = operation.partition(" ")
            sent = await RECIPES[operation](world)
            before = await world.events()
            if sent.content is None:
                await world.send(method, path.format(**sent.path), sent.body, token=sent.token)
            else:
                reply = await world.client.request(method, path, content=sent.content, headers=sent.headers)
                assert reply.is_success, reply.text
            if await world.events() == before:
                silent.append(operation)
        assert not silent, "these left no event"
        await check_outbox(world)


async def check_outbox(world: World) -> None:
    """What all of them have told fits the catalogue, and is told of somebody."""
    rows = await world.db.fetch_alone(TOLD)
    assert {row["event_type"].partition(".")[0] for row in rows} >= {"asset", "subscription"}
    assert [(row["event_type"], row["payload_json"]) for row in rows if row["user_id"] is None] == []
    wrong = [faults(row["event_type"], row["event_version"], row["payload_json"]) for row in rows]
    assert [each for each in wrong if each] == []

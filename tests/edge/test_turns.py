"""One user's changes take turns: while they wait for that user's lock, others get a connection."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from headrace.billing.holds import BillingFollower
from headrace.database import Database, DatabaseConfig
from headrace.edge.errors import TooManyAtOnce
from headrace.edge.turns import UserTurns
from headrace.tasks import live
from headrace.tasks.catalog import StoredCatalog, declare_types
from headrace.tasks.followers import Followers
from headrace.tasks.routes import create_router
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.billing import stand as billing
from tests.edge import stand
from tests.open_types import OpenRegistry
from tests.web.world import whole_api

TWO_IN_LINE = """
SELECT count(*) = 2 FROM pg_locks
WHERE NOT granted AND locktype = 'tuple' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


async def test_orders_of_one_user_do_not_hold_all_connections(db: Database) -> None:
    """200 orders of one user made others wait for 2.9 s: each held a connection while it waited for the entitlement."""
    registry = OpenRegistry()
    registry.task("render", units=1)(lambda _context, _payload: None)
    async with db.transaction() as tx:
        await declare_types(tx, registry)
    ada, bob = await stand.user(db, "ada"), await stand.user(db, "bob")
    for user in (ada, bob):
        await billing.grant_alone(db, user, 100)
    submitter = Submitter(StoredCatalog(), Followers({"billing": BillingFollower()}))
    async with (
        await Database.connect(DatabaseConfig(db.config.url, pool_max=5)) as small,
        live.open_watch(small) as watch,
    ):
        app = create_app(stand.services(small), WebConfig(), routers=[create_router(Tasks.of(submitter), watch)])
        async with (
            stand.client(app, Authorization=f"Bearer {ada}") as hers,
            stand.client(app, Authorization=f"Bearer {bob}") as his,
            asyncio.timeout(60),
        ):
            async with db.transaction() as tx:  # somebody works on ada's entitlement
                await tx.execute("SELECT FROM headrace.entitlements WHERE user_id = $1 FOR UPDATE", ada)
                waiting = [asyncio.create_task(hers.post("/v1/tasks", json={"type": "render"})) for _ in range(20)]
                while not await tx.fetchval(TWO_IN_LINE):  # behind the one that waits for the transaction itself
                    await asyncio.sleep(0.01)
                assert (await his.post("/v1/tasks", json={"type": "render"})).status_code == 201
                assert not any(each.done() for each in waiting)
            assert {(await each).status_code for each in waiting} == {201}


async def test_a_line_has_an_end_and_nobody_waits_for_ever() -> None:
    turns = UserTurns(at_once=1, most=1, patience=timedelta(milliseconds=20))
    async with turns.of("ada"), turns.of("bob"), turns.of(None), turns.of(None):
        with pytest.raises(TooManyAtOnce):
            async with turns.of("ada"):
                pass
        patient = UserTurns(at_once=1, most=0)
        async with patient.of("ada"):
            with pytest.raises(TooManyAtOnce):
                async with patient.of("ada"):
                    pass
    async with turns.of("ada"):
        pass
    assert turns._lines == {}


@pytest.mark.parametrize(
    "path",
    [
        "/v1/tasks/tsk_1/cancel",
        "/v1/tasks/tsk_1/retry",
        "/v1/executions/exe_01h455vb4pex5vsknk084sn02q/cancel",
        "/v1/schedules/sch_01h455vb4pex5vsknk084sn02q/disable",
    ],
)
async def test_what_gives_units_back_takes_its_users_turn_too(path: str, database_url: str) -> None:
    """A hundred requests to cancel held all connections while they waited for one entitlement."""
    async with whole_api(database_url) as (world, app):
        services = app.state.services
        app.state.services = replace(services, turns=UserTurns(at_once=1, most=0))
        user_id = (await world.client.get("/v1/me")).json()["user"]["id"]
        async with app.state.services.turns.of(user_id):
            refused = await world.client.post(path)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_at_once")
        assert (await world.client.post(path)).status_code == 404

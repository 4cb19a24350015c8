"""Results that are not good: their units come back once, within a day, and a few times a month."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from headrace.billing import returning
from tests.web.world import World, whole_api


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[World]:
    async with whole_api(database_url) as (opened, _):
        yield opened


async def left(world: World) -> int:
    units: int = (await world.send("GET", "/v1/usage/balance")).json()["left"]
    return units


async def give_back(world: World, task_id: str) -> tuple[int, str]:
    reply = await world.client.request("POST", f"/v1/removals/{task_id}/return")
    return reply.status_code, str(reply.json().get("code", ""))


async def test_a_returned_result_is_credited_once_and_audited(world: World) -> None:  # W-08
    task_id = await world.removed()
    before = await left(world)
    removal = (await world.send("GET", f"/v1/removals/{task_id}")).json()
    assert (removal["charged"], removal["returned_at"]) == (1, None)
    assert removal["returnable_until"] is not None

    replies = await asyncio.gather(*(give_back(world, task_id) for _ in range(4)))
    assert replies == [(200, "")] * 4
    assert await left(world) == before + 1
    removal = (await world.send("GET", f"/v1/removals/{task_id}")).json()
    assert (removal["charged"], removal["returnable_until"]) == (0, None)
    assert removal["returned_at"] is not None
    entries = (await world.send("GET", f"/v1/usage?task_id={task_id}")).json()["items"]
    assert [(each["direction"], each["status"], each["units"]) for each in entries] == [
        ("CREDIT", "COMMITTED", 1),
        ("DEBIT", "COMMITTED", 1),
        ("DEBIT", "HELD", 1),
    ]
    trail = await world.db.fetch_alone(
        "SELECT data ->> 'task_id' AS task FROM headrace.audit_events "
        "WHERE data ->> 'reason' = 'Result returned as not good'"
    )
    assert [row["task"] for row in trail] == [task_id]
    verified = (await world.send("POST", "/v1/admin/ledger/verify")).json()
    assert verified["faults"] == []


async def test_three_results_are_returned_a_month_also_at_once(world: World) -> None:
    tasks = [await world.removed() for _ in range(5)]
    before = await left(world)
    replies = await asyncio.gather(*(give_back(world, each) for each in tasks))
    assert sorted(replies) == [(200, "")] * 3 + [(429, "return_limit")] * 2
    assert await left(world) == before + 3
    refused = next(each for each, reply in zip(tasks, replies, strict=True) if reply[0] == 429)
    await world.db.fetch_alone(
        "UPDATE headrace.removals SET returned_at = returned_at - interval '31 days' RETURNING 1"
    )
    assert await give_back(world, refused) == (200, "")


async def test_what_cannot_be_returned(world: World) -> None:
    waiting = await world.removal()
    assert await give_back(world, waiting) == (409, "return_refused")
    late, accepted = await world.removed(), await world.removed()
    await world.db.fetch_alone(
        "UPDATE headrace.tasks SET finished_at = now() - interval '25 hours' WHERE id = $1 RETURNING 1", late
    )
    await world.db.fetch_alone(
        """UPDATE headrace.tasks SET payload = payload || '{"accept_poor": true}' WHERE id = $1 RETURNING 1""", accepted
    )
    assert await give_back(world, late) == (409, "return_refused")
    assert await give_back(world, accepted) == (409, "return_refused")
    assert await give_back(world, "tsk_none") == (404, "removal_not_found")


async def test_a_deployment_may_allow_no_returns(database_url: str) -> None:
    async with whole_api(database_url, removal_returns=0) as (world, _):
        task_id = await world.removed()
        assert (await world.send("GET", f"/v1/removals/{task_id}")).json()["returnable_until"] is None
        assert await give_back(world, task_id) == (429, "return_limit")


async def test_a_return_does_not_wait_for_another_transaction(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returning, "MAX_LOCK_WAIT", timedelta(seconds=1))
    task_id = await world.removed()
    before = await left(world)
    async with world.db.transaction() as tx:
        await tx.execute("SELECT FROM headrace.entitlements FOR NO KEY UPDATE")
        assert await give_back(world, task_id) == (503, "rows_locked")
    assert await give_back(world, task_id) == (200, "")
    assert await left(world) == before + 1

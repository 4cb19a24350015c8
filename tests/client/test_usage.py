"""What may be used and what was, from another program."""

import asyncio
from datetime import UTC, datetime

import pytest

from headrace import ids
from headrace.client import Client, SyncClient
from headrace.client.errors import QuotaExhausted
from headrace.tasks.catalog import declare_types
from tests.billing.stand import grant_alone
from tests.client.conftest import ADMIN_KEY
from tests.tasks.conftest import Bench


async def nothing(context: object, payload: object) -> None: ...


async def prepare(bench: Bench) -> str:
    bench.registry.task("render", units=3)(nothing)
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    return await grant_alone(bench.db, ids.SYSTEM_USER, 4)


async def test_what_is_left_used_and_granted(client: Client, bench: Bench) -> None:  # W-11
    quota = await prepare(bench)
    task = await client.submit("render")
    with pytest.raises(QuotaExhausted, match="costs 3 units and 1 is left") as refused:
        await client.submit("render")
    assert refused.value.details["needed"] == 3
    balance = await client.usage.balance()
    assert (balance.total, balance.left, balance.held) == (4, 1, 3)
    assert [entry.status async for entry in client.usage.list(task_id=task.id)] == ["HELD"]
    assert len(await client.usage.days(until=datetime.now(UTC).date())) == 30
    adjusted = await client.usage.adjust(quota, 2, reason="the outage", once="monday")
    assert adjusted == await client.usage.adjust(quota, 2, reason="the outage", once="monday")
    assert (adjusted.quota_left, adjusted.period_end.tzinfo is not None) == (3, True)
    assert [each.id async for each in client.usage.entitlements(status="ACTIVE")] == [quota]
    await client.submit("render")


async def test_the_same_without_an_event_loop(api: str, bench: Bench) -> None:
    quota = await prepare(bench)

    def use() -> None:
        with SyncClient(api, ADMIN_KEY) as client:
            client.submit("render")
            assert client.usage.balance().left == 1
            assert {entry.status for entry in client.usage.list()} == {"HELD", "COMMITTED"}
            assert client.usage.days()[-1].used == 0
            assert client.usage.adjust(quota, 1, reason="the outage").quota_left == 2
            assert [each.id for each in client.usage.entitlements()] == [quota]
            assert client.usage.entitlement(quota).quota_total == 5

    await asyncio.to_thread(use)

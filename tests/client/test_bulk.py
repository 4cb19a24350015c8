"""Acting on all that match, and statistics, from another program."""

import asyncio

from headrace.admin.bulk.execution import add_handlers
from headrace.admin.statistics import loop
from headrace.client import Client, SyncClient
from headrace.tasks.catalog import declare_types
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks
from tests.client.conftest import ADMIN_KEY
from tests.tasks.conftest import Bench


async def nothing(context: object, payload: object) -> None: ...


def never() -> Tasks:
    raise AssertionError("nobody runs it here")


async def prepare(bench: Bench) -> None:
    bench.registry.task("render")(nothing)
    own = Registry()
    add_handlers(own, bench.db, never, queue="headrace")
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
        await declare_types(tx, own)


async def test_all_that_match_are_counted_and_acted_on_once(client: Client, bench: Bench) -> None:
    await prepare(bench)
    for _ in range(3):
        await client.submit("render")
    assert await client.bulk.count("cancel", type="render") == 3
    assert await client.bulk.count("retry", type="render") == 0
    asked = await client.bulk.tasks("cancel", expected=3, type="render", key="monday")
    again = await client.bulk.tasks("cancel", expected=3, type="render", key="monday")
    assert (again.task_id, asked.matched, asked.finished_at) == (asked.task_id, 3, None)
    assert await client.bulk.get(asked.task_id) == asked
    assert [each.task_id async for each in client.bulk.list()] == [asked.task_id]
    assert (await client.cancel(asked.task_id)).status == "CANCELED"  # which stops it


async def test_the_same_without_an_event_loop(api: str, bench: Bench) -> None:
    await prepare(bench)

    def act() -> None:
        with SyncClient(api, ADMIN_KEY) as client:
            client.submit("render")
            assert client.bulk.count("cancel", queue="default") == 1
            made = client.bulk.tasks("cancel", expected=1, queue="default")
            assert client.bulk.get(made.task_id).action == "cancel"
            assert [each.matched for each in client.bulk.list()] == [1]

    await asyncio.to_thread(act)


async def test_statistics_come_in_steps(client: Client, api: str, bench: Bench) -> None:
    await prepare(bench)
    await client.submit("render")
    await loop.run_once(bench.db)
    points = await client.operations.statistics("day")
    assert points[-1].waiting == 1

    def read() -> int:
        with SyncClient(api, ADMIN_KEY) as same:
            return len(same.operations.statistics("day"))

    assert await asyncio.to_thread(read) == len(points)

"""Submitting: what is refused, and what is submitted once."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.ids import SYSTEM_USER
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import PayloadInvalid, TaskSpecInvalid
from headrace.tasks.model import MEDIA_STEPS, Media, TaskSpec
from tests.migrations.rows import ASSET, USER, insert
from tests.tasks.conftest import Bench
from tests.tasks.test_worker_endings import Order


async def test_a_bad_payload_is_refused_at_submit_with_the_name_of_the_field(bench: Bench) -> None:
    @bench.registry.task("report.build")
    async def build(context: TaskContext, order: Order) -> None: ...

    with pytest.raises(PayloadInvalid, match="pages"):
        await bench.submit("report.build", {"pages": "many"})


@pytest.mark.parametrize("payload", [[], {"pages": "many"}])
async def test_a_payload_that_is_annotated_as_a_dict_is_checked_too(bench: Bench, payload: Any) -> None:
    @bench.registry.task("report.build")
    async def build(context: TaskContext, pages: dict[str, int]) -> None: ...

    with pytest.raises(PayloadInvalid):
        await bench.submit("report.build", payload)


@pytest.mark.parametrize("run_at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)], ids=str)
async def test_a_time_that_would_be_an_infinity_is_refused(bench: Bench, run_at: datetime) -> None:
    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    with pytest.raises(TaskSpecInvalid, match="1970"):
        await bench.submit("work", run_at=run_at)


async def test_a_media_task_is_submitted_by_whoever_knows_its_file(bench: Bench) -> None:
    @bench.registry.task("IMAGE", steps=MEDIA_STEPS)
    async def remove(context: TaskContext, payload: Any) -> str:
        return "clean"

    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    async with bench.db.transaction() as tx:
        await insert(tx, "users")
        await insert(tx, "assets")
    ordered = Media(ASSET, "HIGH", "AUTO", "png")
    task = await bench.submit("IMAGE", user_id=USER, media=ordered)
    many = [TaskSpec("IMAGE", media=ordered), TaskSpec("IMAGE", media=ordered._replace(mode="MANUAL"))]
    others = await bench.submitter.submit_now(bench.db, many, user_id=USER)
    async with bench.working():
        rows = await bench.over(task, *others)
    assert [(row["status"], row["mode"]) for row in rows] == [
        ("SUCCEEDED", "AUTO"),
        ("SUCCEEDED", "AUTO"),
        ("SUCCEEDED", "MANUAL"),
    ]
    assert (rows[0]["input_asset_id"], rows[0]["quality_level"], rows[0]["output_format"]) == (ASSET, "HIGH", "png")
    with pytest.raises(TaskSpecInvalid, match="ordered through removal"):
        await bench.submit("IMAGE", user_id=USER)
    with pytest.raises(TaskSpecInvalid, match="no media type"):
        await bench.submit("work", media=ordered)


async def test_one_key_gives_one_task_under_load(bench: Bench) -> None:  # D-06
    @bench.registry.task("once")
    async def once(context: TaskContext, payload: Any) -> None: ...

    ids = await asyncio.gather(*(bench.submit("once", {"a": 1}, idempotency_key="k1") for _ in range(20)))
    assert len(set(ids)) == 1
    async with bench.db.transaction() as tx:
        assert await tx.fetchval("SELECT count(*) FROM headrace.tasks") == 1
        assert await tx.fetchval("SELECT count(*) FROM headrace.task_queue") == 1


async def test_a_lane_of_a_rolled_back_transaction_is_not_remembered(bench: Bench) -> None:
    @bench.registry.task("lost")
    async def lost(context: TaskContext, payload: Any) -> None: ...

    with pytest.raises(KeyError):
        async with bench.db.transaction() as tx:
            for _ in range(2):
                await bench.submitter.submit(tx, TaskSpec("lost"), user_id=SYSTEM_USER)
            raise KeyError
    task = await bench.submit("lost")
    async with bench.working():
        await bench.over(task)

"""Schedules, runs and locks through the client, against the real API; the sync face has the same verbs."""

import asyncio
import inspect
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.client import ApiError, Client, NewSchedule, SyncClient, errors
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from tests.client.conftest import ADMIN_KEY
from tests.tasks.conftest import Bench

NIGHTLY = NewSchedule(
    "Nightly", "report", {"pages": 3}, cron="0 2 * * *", timezone="Asia/Shanghai", labels={"zone": "a"}, priority=2
)


@pytest.fixture(autouse=True)
async def known(bench: Bench) -> None:
    @bench.registry.task("report")
    async def report(_: TaskContext, __: Any) -> None: ...

    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)


async def test_a_schedule_from_its_making_to_its_end(client: Client) -> None:
    made = await client.schedules.create(NIGHTLY, key="mine")
    assert (await client.schedules.create(NIGHTLY, key="mine")).id == made.id  # sent again
    assert (made.name, made.cron, made.data, made.labels) == ("Nightly", "0 2 * * *", {"pages": 3}, {"zone": "a"})
    assert made.next_run is not None
    assert made.next_run.hour == 18
    assert await client.schedules.get(made.id) == made
    assert (await client.schedules.upcoming(made.id, count=2))[0] == made.next_run
    after = datetime(2026, 3, 27, tzinfo=UTC)
    times = await client.schedules.preview(cron="30 2 * * *", timezone="Europe/Berlin", after=after, count=3)
    assert [each.hour for each in times] == [1, 1, 1]  # UTC; on the last of them the clock goes from 2 to 3

    changed = await client.schedules.update(made.id, version=made.version, interval=60, data=None)
    assert (changed.cron, changed.interval, changed.data) == (None, 60, None)
    with pytest.raises(ApiError) as stale:
        await client.schedules.update(made.id, version=made.version, priority=1)
    assert stale.value.code == "precondition_failed"
    assert not (await client.schedules.disable(made.id)).enabled
    assert (await client.schedules.enable(made.id)).enabled
    other = await client.schedules.create(NewSchedule("Once", "report", run_at=datetime(2030, 1, 1, tzinfo=UTC)))
    assert [each.id async for each in client.schedules.list()] == [other.id, made.id]
    assert [each.id async for each in client.schedules.list(labels={"zone": "a"}, enabled=True)] == [made.id]

    await client.schedules.delete(made.id)
    with pytest.raises(errors.ScheduleNotFound) as gone:
        await client.schedules.get(made.id)
    assert gone.value.code == "schedule_not_found"


async def test_a_type_that_nobody_runs_is_warned_of_and_one_that_is_long_gone_refused(
    client: Client, bench: Bench
) -> None:  # S-02
    made = await client.schedules.create(NIGHTLY)
    assert [(warning.code, warning.text) for warning in made.warnings] == [("no_worker", "No worker is alive.")]
    await bench.db.fetch_alone("UPDATE headrace.task_types SET seen_at = now() - interval '8 days'")
    with pytest.raises(ApiError, match="no longer registered"):
        await client.schedules.update(made.id, priority=1)
    assert (await client.schedules.disable(made.id)).warnings == ()
    with pytest.raises(ApiError, match="no longer registered"):
        await client.schedules.enable(made.id)


async def test_runs_are_started_listed_explained_and_canceled(client: Client) -> None:
    made = await client.schedules.create(NIGHTLY)
    run = await client.schedules.run(made.id, key="now")
    assert (await client.schedules.run(made.id, key="now")).id == run.id
    assert (run.status, run.trigger_type, run.schedule_name, run.is_over) == ("PENDING", "manual", "Nightly", False)
    assert (await client.executions.why(run.id)).reasons[0].code == "no_worker"
    waiting = await client.schedules.run(made.id)
    assert waiting.task_id is None
    listed = [each.id async for each in client.executions.list(schedule_id=made.id, status="PENDING")]
    assert listed == [waiting.id, run.id]
    early = datetime(2026, 1, 1, tzinfo=UTC)
    assert [each async for each in client.executions.list(status=["SUCCEEDED", "FAILED"], due_before=early)] == []
    over = await client.executions.cancel(run.id)
    assert (over.status, over.is_over, over) == ("CANCELED", True, await client.executions.get(run.id))
    figures = await client.schedules.statistics(made.id)
    assert (figures.total_executions, figures.pending) == (1, 1)


async def test_a_lock_is_taken_renewed_refused_and_let_go(client: Client) -> None:
    lock = await client.locks.acquire("deploy", ttl=timedelta(seconds=20), purpose="release 1.2", once="k")
    assert (await client.locks.acquire("deploy", ttl=timedelta(seconds=20), purpose="release 1.2", once="k")) == lock
    assert lock.token is not None
    assert lock.token not in repr(lock)
    with pytest.raises(errors.LockHeld):
        await client.locks.acquire("deploy")
    with pytest.raises(ApiError, match=r"body\.ttl_seconds: Input should be"):
        await client.locks.acquire("another", ttl=timedelta(0))
    renewed = await client.locks.renew(lock, ttl=timedelta(seconds=60))
    assert (renewed.fence, renewed.token) == (lock.fence, lock.token)
    assert renewed.expires_at > lock.expires_at
    assert (await client.locks.release(renewed)).status == "RELEASED"
    with pytest.raises(errors.LockLost):
        await client.locks.renew(lock)
    again = await client.locks.acquire("deploy")
    assert again.fence > lock.fence
    await client.locks.force_release("deploy")
    assert [each.status async for each in client.locks.list(key="deploy")] == ["RELEASED", "RELEASED"]
    assert [each async for each in client.locks.list(status="ACTIVE")] == []


async def test_the_same_without_a_loop(api: str) -> None:
    def use() -> None:
        with SyncClient(api, ADMIN_KEY) as client:
            made = client.schedules.create(NIGHTLY)
            assert client.schedules.get(made.id) == made
            assert client.schedules.update(made.id, priority=5).priority == 5
            assert not client.schedules.disable(made.id).enabled
            assert client.schedules.enable(made.id).enabled
            assert len(client.schedules.upcoming(made.id, count=3)) == 3
            assert len(client.schedules.preview(interval=60)) == 5
            run = client.schedules.run(made.id)
            assert [each.id for each in client.executions.list()] == [run.id]
            assert client.executions.why(run.id).status == "PENDING"
            assert client.executions.cancel(run.id).is_over
            assert client.executions.get(run.id).status == "CANCELED"
            assert client.schedules.statistics(made.id).total_executions == 1
            assert [each.id for each in client.schedules.list(name="night")] == [made.id]
            client.schedules.delete(made.id)
            lock = client.locks.acquire("deploy")
            assert [each.fence for each in client.locks.list(status="ACTIVE")] == [lock.fence]
            assert client.locks.release(client.locks.renew(lock)).status == "RELEASED"
            client.locks.acquire("deploy")
            assert client.locks.force_release("deploy").status == "RELEASED"

    await asyncio.to_thread(use)


async def test_both_faces_have_the_same_verbs_with_the_same_parameters(api: str) -> None:
    async with Client(api, ADMIN_KEY) as one:
        with SyncClient(api, ADMIN_KEY) as other:
            for group in ("schedules", "executions", "locks"):
                ours, theirs = getattr(one, group), getattr(other, group)
                verbs = [name for name in dir(ours) if not name.startswith("_")]
                assert verbs == [name for name in dir(theirs) if not name.startswith("_")]
                for verb in verbs:
                    asked = [inspect.signature(getattr(each, verb), eval_str=True) for each in (ours, theirs)]
                    assert asked[0].parameters == asked[1].parameters, verb

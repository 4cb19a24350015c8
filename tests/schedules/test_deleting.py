"""A schedule is gone with the commit of its deletion; a long history goes in batches afterwards."""

from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from headrace import ids
from headrace.accounts.config import ThrottleConfig
from headrace.assembly.retention import purges
from headrace.audit import Who
from headrace.database import Row
from headrace.errors import NotFound
from headrace.purging import purge
from headrace.schedules.executions import get_execution, list_executions
from headrace.schedules.model import ScheduleSpec
from headrace.schedules.service import (
    delete_schedule,
    ensure_schedule,
    get_schedule,
    list_schedules,
    purge_deleted,
    run_schedule,
)
from headrace.schedules.store.executions import ExecutionFilter
from headrace.schedules.store.schedules import ScheduleFilter
from headrace.tasks.context import TaskContext
from tests.schedules.conftest import Clockwork
from tests.tasks.people import trail

HISTORY = """
INSERT INTO headrace.task_executions (task_uid, task_name, task_type, execution_uid, scheduled_at, run_by, state,
  started_at, finished_at, trigger_type)
SELECT uid, name, type, 'exe_0' || left(md5(uid || n), 25), now() - n * interval '1 s', 'w', 'success', now(), now(),
       'scheduled'
FROM headrace.scheduled_tasks, generate_series(1, $2::integer) AS n WHERE uid = $1
"""


async def delete(clockwork: Clockwork, uid: str) -> None:
    async with clockwork.db.transaction() as tx:
        await delete_schedule(tx, clockwork.caller, uid)


async def rows_of(clockwork: Clockwork, uid: str) -> list[Row]:
    return await clockwork.db.fetch_alone("SELECT * FROM headrace.scheduled_tasks WHERE uid = $1", uid)


async def test_it_is_gone_at_once_and_its_history_in_batches(clockwork: Clockwork) -> None:
    made, other = await clockwork.create("nightly"), await clockwork.create("daily")
    await clockwork.db.fetch_alone(HISTORY, made.uid, 5500)
    await clockwork.db.fetch_alone(HISTORY, other.uid, 1)
    await delete(clockwork, made.uid)

    left = len(await clockwork.runs(made.uid))
    assert 2000 < left < 5500
    with pytest.raises(NotFound):
        await delete(clockwork, made.uid)
    async with clockwork.db.transaction() as tx:
        for gone in (
            get_schedule(tx, clockwork.caller, made.uid),
            get_execution(tx, clockwork.caller, f"{made.uid}/5000"),
            run_schedule(tx, clockwork.tasks, clockwork.caller, made.uid),
        ):
            with pytest.raises(NotFound):
                await gone
        shown = await list_schedules(tx, clockwork.caller, ScheduleFilter(ids.SYSTEM_USER), limit=10)
        assert [each.uid for each in shown] == [other.uid]
        # More rows of it than one look goes through: the page is short and says where to go on.
        runs = await list_executions(tx, clockwork.caller, ExecutionFilter(ids.SYSTEM_USER), limit=10)
        assert [run.task_uid for run in runs.items] == [other.uid]
        assert runs.resume is not None
    await clockwork.create("nightly")  # its name is free
    assert (await clockwork.fire(datetime.now(UTC) + timedelta(hours=3))).schedules == 2

    assert (await purge(clockwork.db, purges(ThrottleConfig())))["deleted_schedules"] == left + 1
    assert await rows_of(clockwork, made.uid) == await clockwork.runs(made.uid) == []
    assert len(await clockwork.runs(other.uid)) == 2
    assert [row["resource"]["identifier"] for row in await trail(clockwork.db, "deleted")] == [made.uid]


async def test_who_dies_while_it_goes_leaves_the_rest_to_the_next(clockwork: Clockwork) -> None:
    uids = [(await clockwork.create(name)).uid for name in ("one", "two")]
    for uid in uids:
        await clockwork.db.fetch_alone(HISTORY, uid, 2300)
        await delete(clockwork, uid)
    steps = []
    while True:
        with pytest.raises(ZeroDivisionError):  # before its commit
            async with clockwork.db.transaction() as tx:
                await purge_deleted(tx, 200)
                raise ZeroDivisionError
        async with clockwork.db.transaction() as tx:
            steps.append(await purge_deleted(tx, 200))
        if steps[-1] == 0:
            break
    assert steps == [200, 200, 200, 2, 0]
    assert not any([await rows_of(clockwork, uid) for uid in uids])


async def test_what_moves_at_this_moment_is_not_waited_for(clockwork: Clockwork) -> None:
    made = await clockwork.create()
    async with clockwork.db.transaction() as tx:
        await run_schedule(tx, clockwork.tasks, clockwork.caller, made.uid)
    async with clockwork.db.transaction() as worker:
        await worker.execute("UPDATE headrace.task_executions SET progress = 5 WHERE task_uid = $1", made.uid)
        await delete(clockwork, made.uid)
        async with clockwork.db.transaction() as tx:
            assert await purge_deleted(tx, 100) == 0
    async with clockwork.db.transaction() as tx:
        assert await purge_deleted(tx, 100) == 2


async def test_what_runs_goes_on_and_what_waits_never_starts(clockwork: Clockwork) -> None:
    @clockwork.registry.task("patient")
    async def patient(context: TaskContext, _: object) -> None:
        started.append(context.task_id)
        await delete(clockwork, made.uid)

    started: list[str] = []
    made = await clockwork.create(task_type="patient")
    await clockwork.db.fetch_alone(HISTORY, made.uid, 2500)
    runs = []
    for _ in range(2):
        async with clockwork.db.transaction() as tx:
            runs.append(await run_schedule(tx, clockwork.tasks, clockwork.caller, made.uid))
    assert runs[0].task_id is not None
    async with clockwork.working():
        (row,) = await clockwork.over(runs[0].task_id)
    assert (row["status"], started) == ("SUCCEEDED", [runs[0].task_id])
    tasks = await clockwork.db.fetch_alone("SELECT id FROM headrace.tasks")
    assert [task["id"] for task in tasks] == started


async def test_one_that_ships_with_the_product_is_there_again(clockwork: Clockwork) -> None:
    uid = ids.new("sch")
    spec = ScheduleSpec("shipped", "job", cron="0 2 * * *")

    async def ensure() -> bool:
        async with clockwork.db.transaction() as tx:
            return await ensure_schedule(tx, Who.system(), uid, spec, user_id=ids.SYSTEM_USER)

    assert await ensure()
    await clockwork.db.fetch_alone(HISTORY, uid, 2500)
    await delete(clockwork, uid)
    assert (await rows_of(clockwork, uid))[0]["deleted_at"] is not None
    assert (await ensure(), await ensure()) == (True, False)
    (row,) = await rows_of(clockwork, uid)
    assert (row["deleted_at"], row["enabled"], row["next_run"].hour) == (None, True, 2)


async def test_the_database_lets_no_deleted_one_fire(clockwork: Clockwork) -> None:
    made = await clockwork.create()
    await clockwork.db.fetch_alone(HISTORY, made.uid, 2001)
    await delete(clockwork, made.uid)
    with pytest.raises(Exception, match="ck_scheduled_tasks_deleted_at"):
        await clockwork.db.fetch_alone("UPDATE headrace.scheduled_tasks SET enabled = true WHERE uid = $1", made.uid)


async def test_over_http(ada: httpx2.AsyncClient, clockwork: Clockwork) -> None:
    made = (await ada.post("/v1/schedules", json={"name": "n", "type": "job", "interval": 60})).json()
    await clockwork.db.fetch_alone(HISTORY, made["id"], 2500)
    assert (await ada.delete(f"/v1/schedules/{made['id']}")).status_code == 204
    for path in (f"schedules/{made['id']}", f"schedules/{made['id']}/statistics", f"executions/{made['id']}/2400"):
        assert (await ada.get(f"/v1/{path}")).status_code == 404
    for path in ("schedules", f"executions?schedule_id={made['id']}"):
        assert (await ada.get(f"/v1/{path}")).json()["items"] == []
    assert len(await clockwork.runs(made["id"])) == 500

"""What ships with the product: schedules like any other, run by any worker. S-15."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import ids
from headrace.access import Role
from headrace.accounts.config import ThrottleConfig
from headrace.admin.figures import figures_of
from headrace.admin.health import read_health
from headrace.admin.maintenance import Maintenance, ensure_schedules, schedules_of, uid_of, with_maintenance
from headrace.archive.config import RetentionConfig
from headrace.assembly.followers import followers
from headrace.assembly.retention import ROWS, purges
from headrace.database import Database, Row
from headrace.schedules import service
from headrace.schedules.errors import ScheduleInvalid
from headrace.schedules.loop import Scheduler, SchedulerConfig
from headrace.schedules.model import ScheduleSpec
from headrace.storage import StorageConfig
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.errors import TaskSpecInvalid
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker
from tests.assets.plain import PlainInspector
from tests.assets.stand import files, folder
from tests.billing.stand import grant_alone
from tests.tasks.people import caller_of

SCHEDULES = schedules_of(ROWS)
BY_NAME = {spec.name.removeprefix("headrace: ").removeprefix("retention of "): uid_of(spec) for spec in SCHEDULES}
SYSTEM = caller_of(ids.SYSTEM_USER, role=Role.ADMIN)


class Stand:
    def __init__(self, db: Database, scratch: Path) -> None:
        self.db = db
        self.followers = followers()
        self.tasks = Tasks(Submitter(StoredCatalog(), self.followers), StoredCatalog(), self.followers)
        maintenance = Maintenance(
            db,
            StorageConfig(f"file://{scratch}"),
            RetentionConfig(),
            ROWS,
            purges(ThrottleConfig()),
            lambda: files(folder(scratch / "files"), PlainInspector(), scratch),
            lambda: self.tasks,
        )
        self.registry = with_maintenance(Registry(), maintenance)
        self.config = WorkerConfig(concurrency=4, poll_every=timedelta(milliseconds=100), scratch=scratch)

    async def ensure(self) -> None:
        await ensure_schedules(self.db, self.registry, ROWS)

    async def rows(self, sql: str, *args: object) -> list[Row]:
        return await self.db.fetch_alone(sql, *args)

    async def run_now(self, name: str) -> str:
        async with self.db.transaction() as tx:
            return (await service.run_schedule(tx, self.tasks, SYSTEM, BY_NAME[name])).execution_uid

    async def over(self, execution_uid: str) -> Row:
        async with asyncio.timeout(60):
            while True:
                [row] = await self.rows(
                    "SELECT * FROM headrace.task_executions WHERE execution_uid = $1", execution_uid
                )
                if row["finished_at"] is not None:
                    return row
                await asyncio.sleep(0.02)


@pytest.fixture
async def stand(db: Database, tmp_path: Path) -> Stand:
    return Stand(db, tmp_path)


@pytest.fixture
async def working(stand: Stand) -> AsyncIterator[Stand]:
    """A worker that has only the product's own tasks."""
    await stand.ensure()
    stop = asyncio.Event()
    running = asyncio.create_task(Worker(stand.db, stand.registry, stand.followers, stand.config).run(stop))
    yield stand
    stop.set()
    await running


async def test_they_ship_enabled_at_the_hours_of_the_document(stand: Stand) -> None:
    await stand.ensure()
    rows = {row["name"]: row for row in await stand.rows("SELECT * FROM headrace.scheduled_tasks")}
    assert len(rows) == len(SCHEDULES)
    assert all(row["enabled"] and row["user_id"] == ids.SYSTEM_USER for row in rows.values())
    hours = {name: row["next_run"].hour for name, row in rows.items() if row["cron_expr"]}
    assert hours["headrace: retention of task_executions"] == 2
    assert hours["headrace: retention of audit_events"] == 2
    assert hours["headrace: retention of task_locks"] == 3
    kept = RetentionConfig()
    assert (kept.task_executions, kept.task_locks) == (timedelta(days=90), timedelta(days=7))


async def test_what_was_changed_stays_changed_whoever_starts(stand: Stand) -> None:
    await asyncio.gather(*(stand.ensure() for _ in range(5)))
    async with stand.db.transaction() as tx:
        await service.disable_schedule(tx, stand.tasks, SYSTEM, BY_NAME["task_locks"])
    await stand.ensure()
    rows = await stand.rows("SELECT uid, enabled FROM headrace.scheduled_tasks")
    assert {row["uid"] for row in rows} == set(BY_NAME.values())
    assert [row["uid"] for row in rows if not row["enabled"]] == [BY_NAME["task_locks"]]
    created = await stand.rows(
        "SELECT FROM headrace.audit_events WHERE resource_type = 'scheduledTask' AND action = 'created'"
    )
    assert len(created) == len(SCHEDULES)


EXECUTIONS = """
INSERT INTO headrace.task_executions
  (task_uid, task_name, task_type, execution_uid, run_by, scheduled_at, started_at, finished_at, state, trigger_type,
   created_at)
SELECT $1, 'x', 'x', 'exe_' || $2::text || lpad(n::text, 25, '0'), 'w', at, at, at, 'success', 'scheduled', at
FROM (SELECT n, now() - $3::interval - n * interval '1 minute' AS at FROM generate_series(1, $4::integer) AS n) AS old
"""
LOCKS = """
INSERT INTO headrace.task_locks
  (lock_key, fence, holder_id, token, state, acquired_at, expires_at, released_at)
SELECT 'k', n, 'h', 't', $1::varchar, at, at + interval '1 minute', CASE WHEN $1 = 'released' THEN at END
FROM generate_series($2::integer, $3::integer) AS n, (SELECT now() - $4::interval AS at) AS moment
"""


async def test_old_runs_go_in_batches_and_the_last_of_each_schedule_stays(working: Stand) -> None:
    old, young = BY_NAME["purge"], BY_NAME["task_locks"]
    async with working.db.transaction() as tx:
        await tx.execute(EXECUTIONS, old, "1", timedelta(days=91), 2500)  # more than two batches
        await tx.execute(EXECUTIONS, young, "3", timedelta(days=100), 10)
        await tx.execute(EXECUTIONS, young, "2", timedelta(days=89), 10)
    run = await working.over(await working.run_now("task_executions"))
    assert (run["state"], run["trigger_type"]) == ("success", "manual")
    assert '"removed_rows":2509' in run["result"].replace(" ", "")
    left = await working.rows("SELECT execution_uid FROM headrace.task_executions WHERE task_uid = $1", old)
    assert [row["execution_uid"] for row in left] == ["exe_1" + "1".zfill(25)]
    left = await working.rows("SELECT FROM headrace.task_executions WHERE execution_uid LIKE 'exe_2%'")
    assert len(left) == 10


async def test_released_locks_go_after_a_week_and_their_fences_stay(working: Stand) -> None:
    async with working.db.transaction() as tx:
        await tx.execute("INSERT INTO headrace.lock_fences (lock_key, fence) VALUES ('k', 40)")
        for state, first, last, days in (("released", 1, 10, 8), ("expired", 11, 20, 8), ("released", 21, 30, 6)):
            await tx.execute(LOCKS, state, first, last, timedelta(days=days))
        await tx.execute(LOCKS, "active", 31, 31, timedelta(days=8))  # whose end nobody has written down
    assert (await working.over(await working.run_now("task_locks")))["state"] == "success"
    assert [row["fence"] for row in await working.rows("SELECT fence FROM headrace.task_locks ORDER BY 1")] == [
        *range(21, 32)
    ]
    assert (await working.over(await working.run_now("purge")))["state"] == "success"
    assert (await working.over(await working.run_now("task_locks")))["state"] == "success"
    assert len(await working.rows("SELECT FROM headrace.task_locks")) == 10
    assert (await working.rows("SELECT fence FROM headrace.lock_fences"))[0]["fence"] == 40


async def test_what_cannot_go_fails_and_says_why(working: Stand) -> None:
    async with working.db.transaction() as tx:
        await tx.execute(
            'UPDATE headrace.scheduled_tasks SET data = \'{"table": "users"}\', max_retries = 0 WHERE uid = $1',
            BY_NAME["task_locks"],
        )
    run = await working.over(await working.run_now("task_locks"))
    assert run["state"] == "failure"
    assert "users" in run["error_message"]


async def test_the_scheduler_fires_them_and_a_run_before_the_first_worker_waits_for_it(stand: Stand) -> None:
    await stand.ensure()
    scheduler = Scheduler(stand.db, stand.tasks.submitter, SchedulerConfig())
    night = datetime.now(UTC).replace(hour=2, minute=0, second=0, microsecond=0) + timedelta(days=1)
    fired = await scheduler.run_once(now=night)
    assert fired.executions >= 4
    pending = await stand.rows(
        "SELECT task_name FROM headrace.task_executions WHERE state = 'pending' AND scheduled_at = $1", night
    )
    assert {row["task_name"] for row in pending} >= {
        "headrace: retention of task_executions",
        "headrace: retention of audit_events",
    }


def test_a_programs_own_types_stay_what_they_are(stand: Any) -> None:
    program = Registry()

    @program.task("greet")
    async def greet(context: Any, payload: Any) -> None: ...

    maintenance = Maintenance(
        stand.db,
        StorageConfig("file:///nowhere"),
        RetentionConfig(),
        ROWS,
        purges(ThrottleConfig()),
        lambda: files(folder(Path("/nowhere")), PlainInspector(), Path("/nowhere")),
        lambda: stand.tasks,
    )
    assert with_maintenance(program, maintenance).names == [
        "greet",
        "headrace.add-up-usage",
        "headrace.bulk",
        "headrace.cancel-refunded",
        "headrace.check-payments",
        "headrace.purge",
        "headrace.renew-subscriptions",
        "headrace.retain",
        "headrace.retain-files",
        "headrace.sweep-files",
        "headrace.verify-ledger",
        "headrace.verify-trail",
    ]
    assert program.names == ["greet"]


async def test_what_is_the_products_own_is_nobody_elses(stand: Stand, db: Database) -> None:
    await stand.ensure()
    eve = caller_of(ids.new("u"))
    async with db.transaction() as tx:
        for spec, field in (
            (ScheduleSpec("mine", "headrace.purge", interval=60), "type"),
            (ScheduleSpec("headrace: new", "headrace.purge", interval=60), "name"),
        ):
            with pytest.raises(ScheduleInvalid) as refused:
                await service.create_schedule(tx, stand.tasks, eve, spec)
            assert refused.value.details["fields"] == [field]
        with pytest.raises(TaskSpecInvalid):
            await stand.tasks.submitter.submit(tx, TaskSpec("headrace.purge"), user_id=eve.user_id)


async def test_the_ledger_is_verified_every_day_and_a_fault_raises_an_alarm(working: Stand) -> None:  # W-10
    quota = await grant_alone(working.db, ids.SYSTEM_USER, 10)
    clean = await working.over(await working.run_now("verification of the ledger"))
    assert clean["state"] == "success"
    figures = {each.name: each.values for each in figures_of(await read_health(working.db))}
    assert figures["headrace_ledger_faults"] == {(): 0}
    assert figures["headrace_ledger_verified_timestamp_seconds"][()] > 0
    await working.rows("UPDATE headrace.entitlements SET quota_left = 9 WHERE id = $1", quota)
    faulty = await working.over(await working.run_now("verification of the ledger"))
    assert "1 things do not add up" in faulty["error_message"]
    figures = {each.name: each.values for each in figures_of(await read_health(working.db))}
    assert figures["headrace_ledger_faults"] == {(): 1}

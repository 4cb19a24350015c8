"""One program's open transaction that has submitted for ada, and what everybody else does meanwhile: ends, schedules
and the tasks of dead workers wait for nobody's lock but their own user's, and nobody is charged twice."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from headrace import ids
from headrace.access import Role
from headrace.admin.blocking import list_lasting, read_blocking_figures
from headrace.admin.doctor import DoctorConfig, Verdict, examine
from headrace.audit import Who
from headrace.billing.verifying import verify
from headrace.database import Database, DatabaseConfig
from headrace.database_errors import RowsLocked
from headrace.schedules.loop import Scheduler
from headrace.schedules.model import ScheduleSpec
from headrace.schedules.service import create_schedule
from headrace.tasks import service
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Fatal
from headrace.tasks.reaping import Reaper
from headrace.tasks.why import Code, explain
from headrace.tasks.worker.loop import Worker
from tests.billing import stand
from tests.tasks.conftest import Bench
from tests.tasks.people import caller_of, tasks_of

UNITS = 100
ROUNDS = 5
PAST = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class Case:
    bench: Bench
    url: str
    ada: str
    bob: str
    quota: str  # ada's entitlement

    @asynccontextmanager
    async def importing(self) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """A program's transaction that has submitted one task for ada; it stays open until the call of what this gives,
        or until the end of the block."""
        program = await asyncpg.connect(self.url, server_settings={"application_name": "nightly import"})
        try:
            transaction = program.transaction()
            await transaction.start()
            await program.execute("SELECT headrace.submit('render', '{}', user_id => $1)", self.ada)
            yield transaction.commit
            if program.is_in_transaction():
                await transaction.commit()
        finally:
            await program.close()

    async def waits(self, task_id: str) -> bool:
        row = await self.bench.row(task_id)
        return row["finished_at"] is None

    async def settled_once(self, task_id: str, status: str, source: str) -> None:
        assert await stand.entries(self.bench.db, task_id) == [("HELD", 1, "TASK_CREATE"), (status, 1, source)]

    async def clean(self) -> bool:
        return (await verify(self.bench.db, Who.system())).is_clean


@pytest.fixture
async def case(bench: Bench, database_url: str) -> Case:
    @bench.registry.task("render", units=1, max_attempts=1)
    async def render(context: TaskContext, payload: Any) -> None:
        if (payload or {}).get("used") is not None:
            await context.used(0)
        elif (payload or {}).get("fails"):
            raise Fatal("the picture is broken")

    @bench.registry.task("free")
    async def free(context: TaskContext, payload: Any) -> None: ...

    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    ada, bob = await bench.user("ada"), await bench.user("bob")
    await stand.grant_alone(bench.db, bob, UNITS)
    return Case(bench, database_url, ada, bob, await stand.grant_alone(bench.db, ada, UNITS))


async def test_ends_of_others_are_written_while_a_transaction_keeps_one_users_units_locked(case: Case) -> None:
    bench = case.bench
    failing = [await bench.submit("render", {"fails": True}, user_id=case.ada) for _ in range(5)]
    unused = await bench.submit("render", {"used": 0}, user_id=case.ada)
    async with case.importing() as commit, bench.working() as one, bench.working() as other:
        for _ in range(ROUNDS):
            tasks = [
                await bench.submit("render", {"fails": True}, user_id=case.bob),
                await bench.submit("render", user_id=case.bob),
                await bench.submit("free"),
                await bench.submit("free", user_id=case.ada),
            ]
            ended = await bench.over(*tasks, seconds=20)
            assert [row["status"] for row in ended] == ["FAILED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]
        async with asyncio.timeout(60):
            while one.blocked_ends + other.blocked_ends < 6:
                await asyncio.sleep(0.01)
        assert all([await case.waits(task) for task in [*failing, unused]])
        await commit()
        await bench.over(*failing, unused)
    for task in failing:
        assert (await bench.row(task))["status"] == "FAILED"
        await case.settled_once(task, "RELEASED", "TASK_FAIL")
    assert (await bench.row(unused))["status"] == "SUCCEEDED"
    await case.settled_once(unused, "RELEASED", "TASK_COMPLETE")
    assert one.figures.lost == other.figures.lost == 0
    assert await stand.left(bench.db, case.quota) == UNITS - 1  # the imported task's
    assert await case.clean()


async def test_a_blocked_end_of_a_worker_that_loses_its_lease_is_written_once(case: Case) -> None:
    bench = case.bench
    task = await bench.submit("render", {"fails": True}, user_id=case.ada)
    async with case.importing() as commit, bench.working() as worker:
        async with asyncio.timeout(60):
            while not worker.blocked_ends:
                await asyncio.sleep(0.01)
        await bench.db.fetch_alone("UPDATE headrace.workers SET heartbeat_at = now() - interval '1 hour'")
        async with asyncio.timeout(60):
            while worker.blocked_ends:
                await asyncio.sleep(0.01)
        assert await case.waits(task)
        await commit()
        (row,) = await bench.over(task)
    # By a reaper, or by the attempt to write it that was under way: until somebody took the task it was the worker's.
    assert (row["status"], row["attempt"]) == ("FAILED", 1)
    await case.settled_once(task, "RELEASED", "TASK_FAIL")
    assert await case.clean()


async def test_reaping_leaves_blocked_tasks_for_later_and_ends_the_others(case: Case) -> None:
    bench = case.bench
    ours, theirs = await _hold_by_a_silent_worker(case)
    reaper = Reaper(bench.db, bench.registry, bench.followers)
    async with case.importing():
        reaped = await asyncio.wait_for(reaper.run_once(), 20)
        assert (reaped.workers, reaped.tasks) == (0, 1)
        assert (await bench.row(theirs))["status"] == "FAILED"
        assert await case.waits(ours)
    reaped = await reaper.run_once()
    assert (reaped.workers, reaped.tasks) == (1, 1)
    for task in (ours, theirs):
        await case.settled_once(task, "RELEASED", "TASK_FAIL")
    assert await case.clean()


async def _hold_by_a_silent_worker(case: Case) -> tuple[str, str]:
    """A task of ada's and one of bob's, both in their last attempt and claimed by a worker that died."""
    bench = case.bench
    tasks = [await bench.submit("render", user_id=user_id) for user_id in (case.ada, case.bob)]
    async with bench.db.transaction() as tx:
        number = await tx.fetchval(
            "INSERT INTO headrace.workers (id, host, pid, types, labels, concurrency, lease, heartbeat_at) "
            "VALUES ($1, 'gone', 1, '{render}', '{}', 10, '1 s', now() - interval '1 hour') RETURNING number",
            ids.new("wrk"),
        )
        await tx.execute(
            "UPDATE headrace.task_queue SET worker = $1, attempt = 1, claimed_at = now() WHERE task_id = ANY ($2)",
            number,
            tasks,
        )
    return tasks[0], tasks[1]


async def test_canceling_answers_within_seconds_and_names_the_session_that_blocks_it(case: Case) -> None:
    bench = case.bench
    task = await bench.submit("render", user_id=case.ada)
    async with case.importing():
        with pytest.raises(RowsLocked, match=r"pid \d+"):
            async with asyncio.timeout(20), bench.db.transaction() as tx:
                await service.cancel_task(tx, tasks_of(bench), caller_of(case.ada), task)
        assert await case.waits(task)
    async with bench.db.transaction() as tx:
        await service.cancel_task(tx, tasks_of(bench), caller_of(case.ada), task)
    await case.settled_once(task, "RELEASED", "TASK_CANCEL")
    assert await case.clean()


async def test_submitting_answers_within_seconds_and_names_the_session_that_blocks_it(case: Case) -> None:
    async with case.importing():
        with pytest.raises(RowsLocked, match=r"pid \d+"):
            await asyncio.wait_for(case.bench.submit("render", user_id=case.ada), 20)
        await case.bench.submit("render", user_id=case.bob)
    await case.bench.submit("render", user_id=case.ada)
    assert await stand.left(case.bench.db, case.quota) == UNITS - 2


async def test_schedules_of_others_fire_while_one_users_units_are_locked(case: Case) -> None:
    bench = case.bench
    uids = {}
    async with bench.db.transaction() as tx:
        for user_id in (case.ada, case.bob):
            spec = ScheduleSpec("daily", "render", interval=10**6, run_at=PAST)
            created = await create_schedule(tx, tasks_of(bench), caller_of(user_id), spec)
            uids[user_id] = created.uid
    scheduler = Scheduler(bench.db, bench.submitter)
    async with case.importing():
        fired = await asyncio.wait_for(scheduler.run_once(), 20)
        assert (fired.schedules, fired.executions, fired.blocked) == (1, 1, [uids[case.ada]])
        assert fired.uids == [uids[case.bob]]
    async with asyncio.timeout(60):
        while not (fired := await scheduler.run_once()).schedules:  # it is left alone for a moment
            await asyncio.sleep(0.02)
    assert (fired.uids, fired.executions) == ([uids[case.ada]], 1)
    assert (await scheduler.run_once()).schedules == 0
    assert await case.clean()


async def test_an_end_that_starts_a_blocked_run_of_a_schedule_stops_nobody_elses_ends(case: Case) -> None:
    bench = case.bench
    async with bench.db.transaction() as tx:
        spec = ScheduleSpec("often", "render", interval=10**6, run_at=PAST, max_concurrent=1)
        created = await create_schedule(tx, tasks_of(bench), caller_of(case.ada), spec)
    scheduler = Scheduler(bench.db, bench.submitter)
    assert (await scheduler.run_once()).executions == 1
    # One run waits for the slot of the first: the end of that one submits its task, which costs a unit.
    await bench.db.fetch_alone("UPDATE headrace.scheduled_tasks SET next_run = now() WHERE uid = $1", created.uid)
    assert (await scheduler.run_once()).executions == 1
    async with case.importing() as commit, bench.working() as worker:
        async with asyncio.timeout(60):
            while not worker.blocked_ends:
                await asyncio.sleep(0.01)
        others = [await bench.submit("render", user_id=case.bob) for _ in range(ROUNDS)]
        await bench.over(*others, seconds=20)
        await commit()
        async with asyncio.timeout(60):
            while await _successes(case, created.uid) < 2:
                await asyncio.sleep(0.02)
    assert await case.clean()


async def _successes(case: Case, uid: str) -> int:
    [row] = await case.bench.db.fetch_alone(
        "SELECT count(*) AS many FROM headrace.task_executions WHERE task_uid = $1 AND state = 'success'", uid
    )
    many: int = row["many"]
    return many


async def test_tasks_of_a_type_declared_late_are_settled_but_for_the_blocked_user(case: Case) -> None:
    bench = case.bench
    submit = "SELECT headrace.submit('late', '{}', user_id => $1, unknown_type => 'wait', trusted => true) AS id"
    waiting = {user: (await bench.db.fetch_alone(submit, user))[0]["id"] for user in (case.ada, case.bob)}

    @bench.registry.task("late", units=1)
    async def late(context: TaskContext, payload: Any) -> None: ...

    async with case.importing() as commit, bench.working():
        await bench.over(waiting[case.bob], seconds=20)
        assert await case.waits(waiting[case.ada])
        await commit()
        await bench.over(waiting[case.ada])
    for task in waiting.values():
        await case.settled_once(task, "COMMITTED", "TASK_COMPLETE")
    assert await case.clean()


def seeing_all(case: Case) -> DatabaseConfig:
    """The same database as a role that may see other roles' sessions."""
    return DatabaseConfig(case.url.partition("?")[0])


async def test_doctor_why_and_metrics_name_the_session_that_blocks_ends(case: Case) -> None:
    bench = case.bench
    task = await bench.submit("render", {"fails": True}, user_id=case.ada)
    async with case.importing() as commit, bench.working() as worker, await Database.connect(seeing_all(case)) as db:
        async with asyncio.timeout(60):
            while not worker.blocked_ends:
                await asyncio.sleep(0.01)
            while not (blocking := await list_lasting(db)):  # until it has been open for over a second
                pass
        (session,) = blocking
        assert (session.application, session.age is not None and session.age >= 1) == ("nightly import", True)
        found = {each.check: each for each in await examine(db, DoctorConfig())}
        assert found["locks"].verdict is Verdict.WARNING
        assert f"session {session.pid} (nightly import), whose transaction has been open" in found["locks"].message
        async with db.transaction() as tx:
            administrator = await explain(tx, caller_of(case.bob, role=Role.ADMIN), task)
            owner = await explain(tx, caller_of(case.ada), task)
        reason = administrator.reasons[0]
        assert (reason.code, reason.facts["pid"], reason.facts["application"]) == (
            Code.UNITS_LOCKED,
            session.pid,
            "nightly import",
        )
        # Users do not learn who else works on this database, only that somebody does and for how long.
        assert set(owner.reasons[0].facts) == {"pid", "age"}
        assert "nightly import" not in owner.reasons[0].text
        assert await _figure_appears(db, session.pid)
        assert worker_figure(worker, "headrace_worker_blocked_ends") == 1
        # As a role that may not see since when: pid and application all the same.
        (hidden,) = await list_lasting(bench.db)
        assert (hidden.pid, hidden.application, hidden.age) == (session.pid, "nightly import", None)
        await commit()
        await bench.over(task)
        assert worker_figure(worker, "headrace_worker_blocked_ends") == 0
        found = {each.check: each for each in await examine(db, DoctorConfig())}
        assert found["locks"].verdict is Verdict.GOOD


async def _figure_appears(db: Database, pid: int) -> bool:
    labels = (str(pid), "nightly import")
    async with asyncio.timeout(60):
        while True:  # a look may fall between two attempts of the worker
            async with db.transaction() as tx:
                figures = {each.name: each.values for each in await read_blocking_figures(tx)}
            if figures["headrace_blocking_transaction_seconds"].get(labels, 0) > 1:
                return figures["headrace_blocked_sessions"][()] >= 1


def worker_figure(worker: Worker, name: str) -> float:
    (found,) = [each for each in worker.read_figures() if each.name == name]
    return found.values[()]

"""``headrace.submit``: a program in any language submits in its own transaction, and a worker runs it. D-02."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from headrace import ids
from headrace.database import Database
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.registry import Registry
from tests.outbox.hearing import want
from tests.tasks.conftest import Bench
from tests.tasks.sql import caller, count, nothing, row_of, submit

pytestmark = pytest.mark.both

ALL = """
SELECT headrace.submit($1, $2, user_id => $3, title => $4, queue => $5, priority => $6, run_at => $7,
  max_attempts => $8, timeout_seconds => $9, limit_key => $10, labels => $11, trace_id => $12,
  idempotency_key => $13, schedule_uid => $14)
"""


async def test_the_least_call_takes_every_default(db: Database) -> None:
    [row] = await db.fetch_alone("SELECT headrace.submit('report.build', unknown_type => 'wait') AS id")
    task = await row_of(db, "tasks", ids.check(row["id"], "tsk"))
    expected = {
        "user_id": ids.SYSTEM_USER,
        "task_type": "report.build",
        "title": "report.build",
        "payload": {},
        "status": "QUEUED",
        "priority": 0,
        "queue": "default",
        "max_attempts": 1,  # until a worker says what the type's is: see test_settling.py
        "left_to_type": ["queue", "priority", "max_attempts", "timeout_seconds"],
        "timeout_seconds": None,
        "labels": None,
        "limit_key": None,
        "attempt": 0,
    }
    assert {name: task[name] for name in expected} == expected
    assert task["run_at"] == task["queued_at"] == task["created_at"]
    assert abs(ids.time_of(task["id"]) - task["created_at"]) < timedelta(minutes=1)


async def declare(db: Database) -> None:
    registry = Registry()
    registry.task("report.build")(nothing)
    async with db.transaction() as tx:
        await declare_types(tx, registry)


async def test_every_option_arrives(db: Database) -> None:
    later = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    await declare(db)
    [row] = await db.fetch_alone(
        ALL, "report.build", {"n": 1}, ids.SYSTEM_USER, "Q3", "slow", 7, later, 1, 90, "acme", {"gpu": "yes"}, "t-1",
        "k-1", "nightly",
    )  # fmt: skip
    task, place = await row_of(db, "tasks", row[0]), await row_of(db, "task_queue", row[0])
    expected = {
        "title": "Q3",
        "payload": {"n": 1},
        "queue": "slow",
        "priority": 7,
        "run_at": later,
        "max_attempts": 1,
        "timeout_seconds": 90,
        "limit_key": "acme",
        "labels": {"gpu": "yes"},
        "trace_id": "t-1",
        "schedule_uid": "nightly",
        "queue_seq": place["seq"],
    }
    assert {name: task[name] for name in expected} == expected
    assert (place["run_at"], place["precedence"], place["worker"]) == (later, -7, None)
    [lane] = await db.fetch_alone("SELECT * FROM headrace.task_lanes WHERE id = $1", place["lane_id"])
    assert (lane["queue"], lane["task_type"], lane["user_id"]) == ("slow", "report.build", ids.SYSTEM_USER)
    assert (lane["limit_key"], lane["labels"], lane["only_once"]) == ("acme", {"gpu": "yes"}, True)


async def test_a_registered_type_decides_what_the_call_leaves_out(db: Database) -> None:
    registry = Registry()
    registry.task(
        "report.build", queue="reports", priority=5, max_attempts=9, timeout=timedelta(minutes=2), events=False
    )(nothing)
    async with db.transaction() as tx:
        await declare_types(tx, registry)
    task = await row_of(db, "tasks", await submit(db))
    assert (task["queue"], task["priority"], task["max_attempts"], task["timeout_seconds"]) == ("reports", 5, 9, 120)
    assert await count(db, "outbox_events") == 0
    other = await row_of(db, "tasks", await submit(db, queue="other", max_attempts=1))
    assert (other["queue"], other["priority"], other["max_attempts"]) == ("other", 5, 1)


async def test_the_event_is_the_same_that_programs_write(bench: Bench) -> None:
    from headrace.tasks.events import OutboxFollower
    from headrace.tasks.followers import Followers

    bench.followers = Followers({"outbox": OutboxFollower()})
    await want(bench.db)
    bench.registry.task("report.build")(nothing)
    await declare(bench.db)
    await submit(bench.db, trace_id="t-1")
    await bench.submit("report.build", trace_id="t-1")
    rows = await bench.db.fetch_alone(
        "SELECT event_type, event_version, aggregate_type, trace_id, status,"
        " payload_json - '{task_id,run_at,created_at}'::text[] AS payload FROM headrace.outbox_events ORDER BY id"
    )
    assert len(rows) == 2
    assert dict(rows[0]) == dict(rows[1])


async def test_a_worker_runs_what_sql_submitted(bench: Bench) -> None:
    @bench.registry.task("greet")
    async def greet(context: TaskContext, payload: dict[str, str]) -> str:
        return f"hello {payload['name']}"

    early = await submit(bench.db, "greet", {"name": "Ada"})  # before the type is known to anyone
    async with bench.working(listen=True, poll_every=timedelta(minutes=10)):
        await bench.over(early)
        await _until_asleep(bench.db)
        late = await submit(bench.db, "greet", {"name": "Grace"})
        rows = await bench.over(early, late)  # only a wake-up can be this quick
    assert [row["result"] for row in rows] == ["hello Ada", "hello Grace"]


async def test_nobody_is_woken_when_nobody_sleeps(db: Database, database_url: str) -> None:
    async with caller(database_url) as listener:
        heard: list[str] = []
        await listener.add_listener("headrace_tasks", lambda *note: heard.append(str(note)))
        await submit(db)
        await listener.execute("SELECT 1")
        assert heard == []


async def _until_asleep(db: Database) -> None:
    async with asyncio.timeout(60):
        while not await db.fetch_alone("SELECT FROM headrace.workers WHERE asleep AND ended_at IS NULL"):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)

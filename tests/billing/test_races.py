"""Many who want the last units at once, by every way there is: as many get them as there are, and nobody half."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.access import Caller
from headrace.audit import Who
from headrace.billing.verifying import verify
from headrace.database import Database, DatabaseConfig
from headrace.database_errors import DatabaseBusy
from headrace.errors import QuotaExhausted
from headrace.library.program import Headrace
from headrace.outbox import interests
from headrace.outbox.interests import Interest
from headrace.schedules.loop import Scheduler, SchedulerConfig
from headrace.schedules.model import ScheduleSpec
from headrace.schedules.service import create_schedule
from headrace.tasks import service
from headrace.tasks.catalog import declare_types
from headrace.tasks.model import TaskSpec
from tests.billing import stand
from tests.open_types import OpenRegistry
from tests.tasks import sql
from tests.tasks.conftest import Bench
from tests.tasks.people import caller_of, tasks_of

CLIENTS, UNITS = 200, 50
PAST = datetime(2026, 3, 1, tzinfo=UTC)
Client = Callable[[], Awaitable[int]]  # gives how many tasks it made


async def nothing(context: object, payload: object) -> None: ...


@pytest.fixture
async def caller(bench: Bench) -> Caller:
    bench.registry.task("render", units=1)(nothing)
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    return caller_of(await bench.user("ada"))


async def count(db: Database, table: str, where: str = "true") -> int:
    [row] = await db.fetch_alone(f"SELECT count(*) AS many FROM headrace.{table} WHERE {where}")
    many: int = row["many"]
    return many


async def race(clients: Sequence[Client]) -> tuple[int, int]:
    """How many tasks were made, and how many clients were refused; nothing else may happen to one."""

    async def ask(client: Client) -> int | None:
        while True:
            try:
                return await client()
            except DatabaseBusy:  # on a slow machine some wait for longer than they may for one of the few connections
                continue
            except QuotaExhausted:
                return None
            except Exception as exc:
                if getattr(exc, "sqlstate", None) != "HR006":
                    raise
                return None

    made = await asyncio.gather(*(ask(client) for client in clients))
    return sum(each or 0 for each in made), made.count(None)


def single(bench: Bench, caller: Caller) -> Client:
    async def ask() -> int:
        async with bench.db.transaction() as tx:
            await service.submit_task(tx, tasks_of(bench), caller, TaskSpec("render"))
        return 1

    return ask


def batch(bench: Bench, caller: Caller, size: int) -> Client:
    async def ask() -> int:
        async with bench.db.transaction() as tx:
            return len(await service.submit_tasks(tx, tasks_of(bench), caller, [TaskSpec("render")] * size))

    return ask


def in_sql(bench: Bench, caller: Caller) -> Client:
    async def ask() -> int:
        await sql.submit(bench.db, "render", user_id=caller.user_id)
        return 1

    return ask


async def test_of_200_clients_who_want_the_last_50_units_50_get_one(bench: Bench, caller: Caller) -> None:  # W-10
    async with bench.db.transaction() as tx:  # somebody wants to hear of them
        await interests.declare(tx, "webhooks", "", [Interest("task.*")])
    quota = await stand.grant_alone(bench.db, caller.user_id, UNITS)
    made, refused = await race([single(bench, caller) for _ in range(CLIENTS)])
    assert (made, refused) == (UNITS, CLIENTS - UNITS)
    assert await stand.left(bench.db, quota) == 0
    for table in ("tasks", "task_queue"):
        assert await count(bench.db, table) == UNITS
    assert await count(bench.db, "outbox_events", "event_type LIKE 'task.%'") == UNITS
    assert await count(bench.db, "outbox_events", "event_type = 'quota.reached'") == 2, "at 80 and at 100 percent"
    assert await count(bench.db, "usage_ledger", "status = 'HELD'") == UNITS
    assert await count(bench.db, "audit_events", "action = 'created' AND resource_type = 'task'") == UNITS
    assert (await verify(bench.db, Who.system())).is_clean


async def test_single_batch_sql_library_and_schedules_mixed_spend_what_there_is_and_no_more(
    bench: Bench, caller: Caller, database_url: str
) -> None:  # W-10
    quota = await stand.grant_alone(bench.db, caller.user_id, UNITS)
    async with bench.db.transaction() as tx:
        for number in range(40):
            spec = ScheduleSpec(f"s{number}", "render", interval=10**6, run_at=PAST)
            await create_schedule(tx, tasks_of(bench), caller, spec)
    scheduler = Scheduler(bench.db, bench.submitter, SchedulerConfig(batch=7))

    async def fire() -> int:
        await scheduler.run_once()
        return 0  # counted below

    registry = OpenRegistry()
    registry.task("render", units=1)(nothing)
    async with Headrace(database_url, registry, user_id=caller.user_id, pool_max=3) as library:

        async def embedded() -> int:
            await library.submit("render")
            return 1

        clients: list[Client] = []
        for _ in range(40):
            clients += [single(bench, caller), in_sql(bench, caller), batch(bench, caller, 3), embedded, fire]
        made, _ = await race(clients)
    while (await scheduler.run_once()).schedules:  # what nobody came to
        pass
    started = await count(bench.db, "task_executions", "task_id IS NOT NULL")
    failed = await count(bench.db, "task_executions", "state = 'failure' AND error_message LIKE 'This costs%'")
    assert started + failed == 40
    assert await count(bench.db, "tasks") == made + started == UNITS - await stand.left(bench.db, quota)
    # Nobody who wants one is refused while one is left; who wants three at once may be.
    assert await stand.left(bench.db, quota) == 0
    assert (await verify(bench.db, Who.system())).is_clean


async def test_a_schedule_whose_owner_has_no_units_fails_and_the_others_run(bench: Bench, caller: Caller) -> None:
    # W-10, S-14
    bench.registry.task("free")(nothing)
    rich = caller_of(await bench.user("bea"))
    await stand.grant_alone(bench.db, caller.user_id, 1)
    await stand.grant_alone(bench.db, rich.user_id, 5)
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
        for who, name, kind in [
            (caller, "a", "render"), (caller, "b", "render"), (caller, "c", "free"), (rich, "d", "render"),
        ]:  # fmt: skip
            spec = ScheduleSpec(name, kind, interval=60, run_at=PAST, misfire_policy="latest")  # type: ignore[arg-type]
            await create_schedule(tx, tasks_of(bench), who, spec)
    await Scheduler(bench.db, bench.submitter).run_once()
    rows = await bench.db.fetch_alone(
        "SELECT task_name, state, error_message FROM headrace.task_executions ORDER BY task_name"
    )
    states = {row["task_name"]: row["state"] for row in rows}
    assert states["c"] == states["d"] == "pending"
    assert sorted((states["a"], states["b"])) == ["failure", "pending"]
    [reason] = [row["error_message"] for row in rows if row["state"] == "failure"]
    assert "This costs 1 unit and 0 are left" in reason
    counts = await bench.db.fetch_alone("SELECT sum(failure_executions) AS failed FROM headrace.scheduled_tasks")
    assert counts[0]["failed"] == 1


async def test_holds_and_releases_of_two_users_at_once_never_wait_for_each_other(bench: Bench, caller: Caller) -> None:
    """Batches of several users, whose entitlements are locked in whatever order they come, and ends beside them."""
    others = [caller.user_id, *[await bench.user(f"u{number}") for number in range(4)]]
    for user_id in others:
        for days in (9, 5, 7):
            await stand.grant_alone(bench.db, user_id, 200, ends_in=timedelta(days=days))

    async def churn(number: int) -> None:
        user_id = others[number % len(others)]
        async with bench.db.transaction() as tx:
            ids = await bench.submitter.submit_many(tx, [TaskSpec("render")] * 5, user_id=user_id)
        for task_id in ids:
            async with bench.db.transaction() as tx:
                await service.cancel_task(tx, tasks_of(bench), caller_of(user_id), task_id)

    await asyncio.gather(*(churn(number) for number in range(40)))
    assert (await verify(bench.db, Who.system())).is_clean
    [row] = await bench.db.fetch_alone("SELECT sum(quota_total - quota_left) AS gone FROM headrace.entitlements")
    assert row["gone"] == 0


async def test_a_ledger_that_is_verified_while_it_moves_is_clean(
    bench: Bench, caller: Caller, database_url: str
) -> None:
    """One snapshot: a hold that is settled between two statements is no fault."""
    await stand.grant_alone(bench.db, caller.user_id, 400)
    found: list[Any] = []
    async with await Database.connect(DatabaseConfig(database_url, role="test")) as db, bench.working():

        async def look() -> None:
            found.extend([await verify(db, Who.system()) for _ in range(10)])

        async def work() -> None:
            for _ in range(10):
                async with bench.db.transaction() as tx:
                    await bench.submitter.submit_many(tx, [TaskSpec("render")] * 20, user_id=caller.user_id)

        await asyncio.gather(look(), work())
    assert [each.faults for each in found if not each.is_clean] == []

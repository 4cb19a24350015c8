"""How many tasks of a user run at once, by their plan."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.billing.features import features_of
from headrace.database import Tx
from headrace.ids import new
from headrace.tasks.context import TaskContext
from headrace.tasks.why import Code, explain
from tests.tasks.conftest import Bench
from tests.tasks.people import person

SAID: list[tuple[list[Any], int]] = [
    ([], 2),
    ([[]], 2),
    ([[{"feature": "concurrency", "tasks": 5}]], 5),
    ([[{"feature": "concurrency", "tasks": 1}]], 1),
    ([[{"feature": "concurrency", "tasks": 1}], []], 2),
    ([[{"feature": "concurrency", "tasks": 0}, {"feature": "concurrency", "tasks": 7}]], 7),
    ([[{"feature": "concurrency", "tasks": 4}, {"feature": "concurrency", "tasks": 7}]], 4),
    ([[{"feature": "label", "text": "x"}, {"feature": "other"}, {"feature": "concurrency", "tasks": 3}]], 3),
]

ENTITLE = """
INSERT INTO headrace.entitlements
  (id, user_id, plan_id, quota_total, quota_left, period_start, period_end, status, features_json)
SELECT $1, $2, id, 5, 5, $3, $4, 'ACTIVE', $5 FROM headrace.plans LIMIT 1
"""


async def entitle(tx: Tx, user_id: str, features: Any, *, starts: timedelta = timedelta(days=-1)) -> None:
    start = datetime.now(UTC) + starts
    values = (new("ent"), user_id, start, start + timedelta(days=9), features)
    await tx.execute(ENTITLE, *values)


@pytest.mark.parametrize(("plans", "most"), SAID)
async def test_sql_and_python_read_the_same_of_plans(tx: Tx, plans: list[Any], most: int) -> None:  # W-15
    user_id = await tx.fetchval("SELECT id FROM headrace.users LIMIT 1")
    await tx.execute("DELETE FROM headrace.entitlements WHERE user_id = $1", user_id)
    for features in plans:
        await entitle(tx, user_id, features)
    await entitle(tx, user_id, [{"feature": "concurrency", "tasks": 99}], starts=timedelta(days=-90))  # over
    assert (await features_of(tx, user_id)).concurrency == most
    assert await tx.fetchval("SELECT headrace.plan_concurrency($1)", user_id) == most


async def test_a_plan_says_how_many_tasks_of_a_user_run_at_once(bench: Bench) -> None:  # W-15
    ada, bob = await person(bench), await person(bench, name="bob")
    async with bench.db.transaction() as tx:
        await entitle(tx, bob.user_id, [{"feature": "concurrency", "tasks": 3}])
    at_once: dict[str, int] = {}
    most: dict[str, int] = {}
    begun: list[str] = []
    go = asyncio.Event()

    async def work(context: TaskContext, payload: Any) -> None:
        user = context.user_id
        begun.append(context.task_id)
        at_once[user] = at_once.get(user, 0) + 1
        most[user] = max(most.get(user, 0), at_once[user])
        await go.wait()
        at_once[user] -= 1

    bench.registry.task("one", limited_by_plan=True)(work)
    bench.registry.task("two", limited_by_plan=True)(work)
    bench.registry.task("free")(work)  # of which the plan says nothing
    hers = [await bench.submit(name, user_id=ada.user_id) for name in ("one", "two", "one", "two", "one")]
    his = [await bench.submit(name, user_id=bob.user_id) for name in ("one", "two", "one", "two")]
    free = [await bench.submit("free", user_id=ada.user_id) for _ in range(3)]
    async with bench.working(), bench.working():
        async with asyncio.timeout(60):
            while sum(at_once.values()) < 2 + 3 + len(free):
                await asyncio.sleep(0.02)
        waiting = [task for task in hers if task not in begun]
        assert len(waiting) == 3
        async with bench.db.transaction() as tx:
            (reason,) = (await explain(tx, ada, waiting[0])).reasons
        assert (reason.code, reason.facts["scope"], reason.facts["limit"]) == (Code.LIMIT_REACHED, "plan", 2)
        assert reason.text == "2 tasks of this user are running, of 2 that may run at once by their plan."
        assert set(reason.facts["own_tasks"]) == set(hers) - set(waiting)
        go.set()
        rows = await bench.over(*hers, *his, *free)
    assert {row["status"] for row in rows} == {"SUCCEEDED"}
    assert most == {ada.user_id: 2 + len(free), bob.user_id: 3}

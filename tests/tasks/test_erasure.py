"""What tasks forget of a user whose account goes. W-16."""

import asyncio
from typing import Any

import pytest

from headrace.database import Tx
from headrace.erasure import Eraser, NotYet
from headrace.tasks.context import TaskContext
from headrace.tasks.erasure import (
    _THE_END_OF_TIME,
    COUNT_NOT_OVER,
    TO_BLANK,
    TO_CANCEL,
    CancelTasks,
    EraseTasks,
)
from tests.tasks.conftest import Bench
from tests.tasks.people import tasks_of


async def erase(bench: Bench, step: Eraser, user_id: str) -> int:
    return sum([gone async for gone in step.erase(bench.db, user_id)])


async def test_what_waits_is_canceled_and_what_runs_is_told_to_stop(bench: Bench) -> None:
    started, let_go = asyncio.Event(), asyncio.Event()

    @bench.registry.task("long")
    async def run(context: TaskContext, payload: Any) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            await let_go.wait()

    @bench.registry.task("later")
    async def later(context: TaskContext, payload: Any) -> None: ...

    ada, bob = await bench.user("ada"), await bench.user("bob")
    step = CancelTasks(tasks_of(bench))
    async with bench.working():
        running = await bench.submit("long", user_id=ada)
        await started.wait()
        async with bench.db.transaction() as tx:
            await tx.execute("INSERT INTO headrace.queues (name, paused_at) VALUES ('default', now())")
        waiting = [await bench.submit("later", user_id=user) for user in (ada, bob)]
        with pytest.raises(NotYet, match="1 tasks"):
            await erase(bench, step, ada)
        assert (await bench.row(waiting[0]))["status"] == "CANCELED"
        let_go.set()
        await bench.over(running)
        assert await erase(bench, step, ada) == 0
    assert (await bench.row(running))["status"] == "CANCELED"
    assert (await bench.row(waiting[1]))["status"] == "QUEUED"  # somebody else's


async def test_of_a_task_that_is_over_only_the_frame_stays(bench: Bench) -> None:
    @bench.registry.task("note", steps=("look",))
    async def note(context: TaskContext, payload: Any) -> Any:
        async with context.step("look") as step:
            step.detail = {"at": "ada"}
            await context.log("ada was here")
        if payload == "bad":
            raise ValueError("ada's fault")
        return payload

    ada, bob = await bench.user("ada"), await bench.user("bob")
    async with bench.working():
        tasks = [
            await bench.submit("note", payload, user_id=user, title="for ada", labels={}, max_attempts=1)
            for payload, user in (("of ada", ada), ("bad", ada), ("of bob", bob))
        ]
        await bench.over(*tasks)
    assert [await erase(bench, EraseTasks(), ada) for _ in range(2)] == [2, 0]
    for task_id in tasks[:2]:
        row = await bench.row(task_id)
        assert (row["title"], row["payload"], row["result"], row["error_message"]) == ("(deleted)", None, None, None)
        assert row["deleted_at"] is not None
        assert await bench.logged(task_id) == []
    steps = await bench.db.fetch_alone("SELECT detail_json FROM headrace.task_steps WHERE task_id <> $1", tasks[2])
    assert {each["detail_json"] for each in steps} <= {None}
    kept = await bench.row(tasks[2])
    assert (kept["payload"], kept["result"], kept["deleted_at"]) == ("of bob", "of bob", None)
    assert await bench.logged(tasks[2]) != []


async def test_however_many_there_are_each_is_reached(bench: Bench) -> None:
    ada = await bench.user("ada")
    await bench.db.fetch_alone(
        "INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, status, finished_at, created_at) "
        "SELECT 'tsk_' || lpad(n::text, 26, '0'), $1, 'note', 'for ada', '1', "
        "CASE n % 2 WHEN 0 THEN 'FAILED' ELSE 'SUCCEEDED' END, now(), now() - n / 300 * interval '1 s' "
        "FROM generate_series(1, 1000) AS n",
        ada,
    )
    await bench.db.fetch_alone(
        "INSERT INTO headrace.task_logs (task_id, status, message) "
        "SELECT 'tsk_' || lpad('7', 26, '0'), 'LOG', 'of ada' FROM generate_series(1, 11000)"
    )
    assert await erase(bench, EraseTasks(), ada) == 1000
    assert await bench.db.fetch_alone("SELECT FROM headrace.task_logs LIMIT 1") == []
    assert await bench.db.fetch_alone("SELECT FROM headrace.tasks WHERE title = 'for ada'") == []


async def test_an_interrupted_deletion_blanks_no_row_twice(bench: Bench) -> None:
    """It began again at the newest task each time, and blanked 158,220 rows a second time instead of going on."""
    ada = await bench.user("ada")
    await bench.db.fetch_alone(
        "INSERT INTO headrace.tasks (id, user_id, task_type, title, status, finished_at, created_at, deleted_at) "
        "SELECT 'tsk_' || lpad(n::text, 26, '0'), $1, 'note', 'for ada', 'SUCCEEDED', now(), "
        "now() - n * interval '1 s', CASE WHEN n % 10 = 0 THEN now() END "  # some were deleted by ada herself
        "FROM generate_series(1, 500) AS n",
        ada,
    )
    await bench.db.fetch_alone(
        "INSERT INTO headrace.task_logs (task_id, status, message) SELECT id, 'LOG', 'of ada' FROM headrace.tasks"
    )
    steps = EraseTasks().erase(bench.db, ada)
    while await anext(steps) == 0:
        pass
    await steps.aclose()  # as if the process had been killed
    blanked = (
        "SELECT max(version) AS version, count(*) FILTER (WHERE title = '(deleted)') AS number FROM headrace.tasks"
    )
    [row] = await bench.db.fetch_alone(blanked)
    assert (row["version"], row["number"]) == (1, 200)
    assert await erase(bench, EraseTasks(), ada) == 300
    [row] = await bench.db.fetch_alone(blanked)
    assert (row["version"], row["number"]) == (1, 500)
    assert await bench.db.fetch_alone("SELECT FROM headrace.task_logs LIMIT 1") == []


async def test_its_look_ups_use_an_index(owner_tx: Tx) -> None:
    await owner_tx.execute(
        """
        INSERT INTO headrace.users (id, username, password_hash)
          SELECT 'u_' || n, 'user' || n, '!' FROM generate_series(1, 200) AS n;
        INSERT INTO headrace.tasks (id, user_id, task_type, title, status, finished_at, created_at)
          SELECT 'tsk_' || n, 'u_' || n % 200 + 1, 'note', '', CASE WHEN n % 3 = 0 THEN 'QUEUED' ELSE 'SUCCEEDED' END,
                 CASE WHEN n % 3 <> 0 THEN now() END, now() - n * interval '1 s'
          FROM generate_series(1, 20000) AS n;
        ANALYZE headrace.tasks;
        SET LOCAL plan_cache_mode = force_generic_plan;
        """
    )
    for sql, args in (
        (TO_CANCEL, ("u_1", 200)),
        (COUNT_NOT_OVER, ("u_1",)),
        (TO_BLANK, ("u_1", "SUCCEEDED", 200, *_THE_END_OF_TIME)),
    ):
        plan = "\n".join(row[0] for row in await owner_tx.fetch(f"EXPLAIN {sql}", *args))
        assert "idx_tasks_user_status_created_at" in plan, plan
        assert "Seq Scan on tasks" not in plan, plan

"""Lists of tasks: what is asked for, newest first, every task once, whatever the filters and however many there are."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import walks
from headrace.access import AdminOnly, Caller, Role
from headrace.database import Tx
from headrace.sql import Mark
from headrace.tasks import service
from headrace.tasks.context import TaskContext
from headrace.tasks.model import Task, TaskStatus
from headrace.tasks.store.tasks import Filter
from tests.tasks.conftest import Bench
from tests.tasks.people import hire, person, take, trail

START = datetime(2026, 3, 1, tzinfo=UTC)

INSERT = """
INSERT INTO headrace.tasks (id, user_id, task_type, title, queue, status, finished_at, created_at, deleted_at)
SELECT 'tsk_' || $1 || lpad(n::text, 6, '0'), $1,
       CASE WHEN n % 7 = 0 THEN 'rare' ELSE 'common' END, 't', CASE WHEN n % 3 = 0 THEN 'slow' ELSE 'default' END,
       status, CASE WHEN status IN ('SUCCEEDED', 'FAILED') THEN now() END,
       -- several in one microsecond, as a batch has them
       $2::timestamptz + n / 4 * interval '1 minute',
       CASE WHEN n % 11 = 0 AND status = 'SUCCEEDED' THEN now() END
FROM generate_series(1, $3::int) AS n,
     LATERAL (SELECT (ARRAY['SUCCEEDED', 'FAILED', 'QUEUED', 'SUCCEEDED', 'RUNNING'])[n % 5 + 1]) AS s (status)
"""

# As whoever submits makes them.
LANES = """
SELECT headrace.assign_lane(queue, task_type, user_id, '', '{}', false)
FROM (SELECT DISTINCT queue, task_type, user_id FROM headrace.tasks WHERE user_id = $1) AS kinds
"""


async def fill(bench: Bench, caller: Caller, rows: int = 100) -> None:
    async with bench.db.transaction() as tx:
        await tx.execute(INSERT, caller.user_id, START, rows)
        await tx.execute(LANES, caller.user_id)


async def everything(tx: Tx, caller: Caller, wanted: Filter, *, limit: int) -> list[Task]:
    """The whole list, page after page, as a client would read it."""
    found: list[Task] = []
    mark: Mark | None = None
    while True:
        page = await service.list_tasks(tx, caller, wanted, older_than=mark, limit=limit)
        found += page.items
        if page.resume is not None:
            mark = page.resume
        elif len(page.items) < limit:
            return found
        else:
            mark = (page.items[-1].created_at, page.items[-1].id)


async def expected(tx: Tx, user_id: str | None, fits: str, *args: object) -> Sequence[str]:
    rows = await tx.fetch(
        f"SELECT id FROM headrace.tasks WHERE deleted_at IS NULL AND ({fits}) "
        f"{'AND user_id = $1' if user_id else ''} ORDER BY created_at DESC, id DESC",
        *((user_id,) if user_id else ()),
        *args,
    )
    return [row["id"] for row in rows]


FILTERS: list[tuple[dict[str, Any], str]] = [
    ({}, "true"),
    ({"statuses": [TaskStatus.FAILED]}, "status = 'FAILED'"),
    ({"statuses": [TaskStatus.SUCCEEDED]}, "status = 'SUCCEEDED'"),
    ({"statuses": [TaskStatus.QUEUED, TaskStatus.RUNNING]}, "status IN ('QUEUED', 'RUNNING')"),
    ({"statuses": [TaskStatus.CANCELED]}, "false"),
    ({"task_type": "rare"}, "task_type = 'rare'"),
    ({"queue": "slow"}, "queue = 'slow'"),
    ({"queue": "slow", "task_type": "rare", "statuses": list(TaskStatus)}, "queue = 'slow' AND task_type = 'rare'"),
    (
        {"created_since": START + timedelta(minutes=5), "created_until": START + timedelta(minutes=15)},
        "created_at >= '2026-03-01 00:05Z' AND created_at < '2026-03-01 00:15Z'",
    ),
    (
        {"statuses": [TaskStatus.FAILED], "created_until": START + timedelta(minutes=15)},
        "status = 'FAILED' AND created_at < '2026-03-01 00:15Z'",
    ),
]


@pytest.mark.parametrize("walk", [5, 17, 5000])
async def test_every_filter_gives_every_task_once(bench: Bench, walk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "ROWS", walk)  # D-07: no page looks at more rows, and nothing is missed for it
    ada, root = await person(bench), await person(bench, "root", role=Role.ADMIN)
    await fill(bench, ada)
    await fill(bench, await person(bench, "eve"))
    async with bench.db.transaction() as tx:
        for asked, fits in FILTERS:
            for caller, user_id in ((ada, ada.user_id), (root, ada.user_id), (root, None)):
                limit = random.choice([1, 4, 20, 101])
                found = await everything(tx, caller, Filter(user_id, **asked), limit=limit)
                assert [task.id for task in found] == await expected(tx, user_id, fits), (asked, user_id, limit)


async def test_only_administrators_list_what_is_not_theirs(bench: Bench) -> None:
    ada, root = await person(bench), await person(bench, "root", role=Role.ADMIN)
    await fill(bench, ada, 10)
    async with bench.db.transaction() as tx:
        for user_id in (root.user_id, None):
            with pytest.raises(AdminOnly):
                await service.list_tasks(tx, ada, Filter(user_id), limit=10)
        await service.list_tasks(tx, root, Filter(root.user_id), limit=10)
        assert (await service.list_tasks(tx, root, Filter(ada.user_id), limit=10)).items
    (event,) = await trail(bench.db, "read")
    assert event["data"] == {"user_id": ada.user_id}


async def test_a_list_leaves_payload_and_result_out_and_shows_who_has_just_been_taken(bench: Bench) -> None:
    @bench.registry.task("report.build")
    async def build(context: TaskContext, payload: Any) -> None: ...

    ada, worker = await person(bench), await hire(bench)
    for _ in range(2):
        await bench.submit("report.build", {"pages": 3}, user_id=ada.user_id)
    (claimed,) = await take(bench, worker, most=1)
    async with bench.db.transaction() as tx:
        waiting, taken = (await service.list_tasks(tx, ada, Filter(ada.user_id), limit=10)).items
        queued = await service.list_tasks(tx, ada, Filter(ada.user_id, [TaskStatus.QUEUED]), limit=10)
    assert (taken.id, taken.status, taken.attempt) == (claimed.task_id, TaskStatus.RUNNING, 1)
    assert (waiting.status, waiting.payload) == (TaskStatus.QUEUED, None)
    # Its row is still among the queued, so that whoever looks for what is not over yet does not miss it.
    assert [task.status for task in queued.items] == [TaskStatus.QUEUED, TaskStatus.RUNNING]


async def test_logs_and_steps_come_in_order_a_page_at_a_time(bench: Bench) -> None:  # D-05
    @bench.registry.task("report.build", max_attempts=2)
    async def build(context: TaskContext, payload: Any) -> None:
        for number in range(5):
            await context.log(f"line {number}")
        async with context.step("render") as step:
            step.detail = {"pages": 3}
        async with context.step("pack"):
            if context.attempt == 1:
                raise OSError("no room")

    ada = await person(bench)
    task = await bench.submit("report.build", user_id=ada.user_id)
    async with bench.working():
        await bench.over(task)
    async with bench.db.transaction() as tx:
        first = await service.list_logs(tx, ada, task, limit=4)
        rest = await service.list_logs(tx, ada, task, after=first[-1].id, limit=4)
        steps = await service.list_steps(tx, ada, task, limit=10)
        failed = await service.list_steps(tx, ada, task, failed=True, limit=10)
    assert [line.message for line in first] == [f"line {number}" for number in range(4)]
    assert rest[0].message == "line 4"
    assert [(step.step_name, step.status, step.attempt, step.detail) for step in steps] == [
        ("render", "SUCCESS", 1, {"pages": 3}),
        ("pack", "FAILED", 1, None),
        ("render", "SKIPPED", 2, {"pages": 3}),
        ("pack", "SUCCESS", 2, None),
    ]
    assert [(step.step_name, step.attempt) for step in failed] == [("pack", 1)]


async def test_a_frequent_status_does_not_hide_a_rare_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "ROWS", 5)
    ada = await person(bench)
    insert = """
        INSERT INTO headrace.tasks (id, user_id, task_type, title, queue, status, finished_at, created_at, updated_at)
        SELECT 'tsk_' || $2 || n, $1, 'common', 't', 'default', $2, now(), at, at
        FROM generate_series(1, $3::int) AS n, LATERAL (SELECT $4::timestamptz + n * interval '1 s' AS at) AS times
    """
    async with bench.db.transaction() as tx:
        for status, count, day in (("CANCELED", 12, 0), ("FAILED", 3, 20), ("SUCCEEDED", 40, 30)):
            await tx.execute(insert, ada.user_id, status, count, START + timedelta(days=day))
        await tx.execute(LANES, ada.user_id)
    root = await person(bench, "root", role=Role.ADMIN)
    wanted = Filter(user_id=None, statuses=[TaskStatus.CANCELED, TaskStatus.FAILED])
    async with bench.db.transaction() as tx:
        found = await everything(tx, root, wanted, limit=4)
    assert sum(each.status is TaskStatus.FAILED for each in found) == 3
    assert len(found) == 15

"""How long tasks are kept: by how they ended, and by what their type says. What their owner deletes is gone."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from headrace import ids
from headrace.archive.config import RetentionConfig
from headrace.archive.retention import walk_rows
from headrace.assembly.retention import ROWS
from headrace.database import Database
from headrace.purging import purge
from headrace.tasks import retention
from headrace.tasks.catalog import declare_types
from headrace.tasks.execution import BadTaskType
from headrace.tasks.registry import Registry
from headrace.tasks.retention_periods import seconds_by_status
from tests.tasks.conftest import Bench
from tests.tasks.sql import nothing
from tests.tasks.test_routes import app, bench  # noqa: F401 - an API and a bench with types

DAY = timedelta(days=1)
FILL = """
INSERT INTO headrace.tasks (id, user_id, task_type, title, status, created_at, updated_at, finished_at)
SELECT format('%s %s %s', type, lower(state), days), $1, type, 'x', state, past.at, past.at,
       CASE WHEN state <> 'QUEUED' THEN past.at END
FROM unnest(ARRAY['brief', 'kept', 'plain']) AS type,
     unnest(ARRAY['SUCCEEDED', 'FAILED', 'CANCELED', 'QUEUED']) AS state,
     unnest($2::integer[]) AS days,
     LATERAL (SELECT now() - days * interval '1 day' AS at) AS past
"""


async def left(db: Database) -> list[str]:
    return [row["id"] for row in await db.fetch_alone("SELECT id FROM headrace.tasks ORDER BY id")]


async def test_tasks_go_by_type_and_by_how_they_ended(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:  # W-18
    monkeypatch.setattr(retention, "_SLICE", 2)  # many slices
    registry = Registry()
    registry.task("brief", retention=DAY)(nothing)
    registry.task("kept", retention={"succeeded": 40 * DAY, "failed": "forever"})(nothing)
    async with db.transaction() as tx:
        await declare_types(tx, registry)
        await tx.execute(FILL, ids.SYSTEM_USER, [0, 2, 20, 50, 100])
    config = RetentionConfig(tasks=30 * DAY, tasks_failed=60 * DAY)
    # How many days each is kept: by its type, or by the settings.
    keeps = {
        "brief": {"succeeded": 1, "failed": 1, "canceled": 1},
        "kept": {"succeeded": 40, "failed": 1000, "canceled": 30},
        "plain": {"succeeded": 30, "failed": 60, "canceled": 30},
    }
    expected = sorted(
        [
            f"{name} {end} {days}"
            for name, ends in keeps.items()
            for end, most in {**ends, "queued": 1000}.items()
            for days in [0, 2, 20, 50, 100]
            if days < most
        ]
    )
    run = await walk_rows(db, ROWS["tasks"], config.tasks_by_status)
    assert await left(db) == expected
    assert run.removed_rows == 60 - len(expected)

    # What lies before the marks is not looked at again until a day has passed, or the rule is another one.
    async with db.transaction() as tx:
        now = await tx.fetchval("SELECT now()")
        await tx.execute(FILL.replace("'%s %s %s'", "'again %s %s %s'"), ids.SYSTEM_USER, [99])
    assert (await walk_rows(db, ROWS["tasks"], config.tasks_by_status, now=now)).removed_rows == 0
    shorter = RetentionConfig(tasks=29 * DAY, tasks_failed=60 * DAY)
    assert (await walk_rows(db, ROWS["tasks"], shorter.tasks_by_status, now=now)).removed_rows == 3
    assert (await walk_rows(db, ROWS["tasks"], shorter.tasks_by_status, now=now + 2 * DAY)).removed_rows > 0
    assert [each for each in await left(db) if each.startswith("again")] == [
        "again brief queued 99",
        "again kept failed 99",
        "again kept queued 99",
        "again plain queued 99",
    ]


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        (None, None),
        (DAY, {"SUCCEEDED": 86400.0, "FAILED": 86400.0, "CANCELED": 86400.0}),
        ({"failed": "forever"}, {"FAILED": None}),
    ],
)
def test_what_a_type_says_is_stored_by_status(said: Any, stored: Mapping[str, float | None] | None) -> None:
    assert seconds_by_status(said) == stored


@pytest.mark.parametrize("said", [3, "long", timedelta(0), {}, {"running": DAY}, {"failed": 3}])
def test_a_type_cannot_say_it_otherwise(said: Any) -> None:
    with pytest.raises(BadTaskType, match="is no retention for t"):
        Registry().task("t", retention=said)(nothing)


async def test_what_is_deleted_is_gone(bench: Bench, ada: httpx2.AsyncClient) -> None:  # noqa: F811
    body = {"type": "report.build", "payload": {"pages": 31337}}
    reply = await ada.post("/v1/tasks", json=body, headers={"Idempotency-Key": "once"})
    task_id = reply.json()["id"]
    async with bench.working():
        await bench.over(task_id)
    assert (await ada.delete(f"/v1/tasks/{task_id}")).status_code == 204
    assert (await ada.get(f"/v1/tasks/{task_id}")).status_code == 404
    # At once: what the task was about.
    [row] = await bench.db.fetch_alone(
        "SELECT payload, result, error_message FROM headrace.tasks WHERE id = $1", task_id
    )
    assert tuple(row) == (None, None, None)
    again = await ada.post("/v1/tasks", json=body, headers={"Idempotency-Key": "once"})
    assert (again.json()["id"], again.json()["payload"]) == (task_id, None)
    # With the next purge, which runs every ten minutes: that it was.
    assert (await purge(bench.db, [retention.DELETED]))["deleted_tasks"] == 1
    for table in ("tasks", "task_logs", "task_steps", "task_results"):
        column = "id" if table == "tasks" else "task_id"
        assert await bench.db.fetch_alone(f"SELECT FROM headrace.{table} WHERE {column} = $1", task_id) == []

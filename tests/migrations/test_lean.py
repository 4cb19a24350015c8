"""The two indexes of tasks by status can be dropped and made again while Headrace runs (D-07)."""

import re
from typing import Any

import asyncpg
import pytest

from headrace import ids
from headrace.database import Database, DatabaseConfig
from headrace.migrations import lean
from tests.conftest import TestServer

_DEFINITIONS = """
SELECT indexname, indexdef FROM pg_indexes
WHERE schemaname = 'headrace' AND indexname = ANY ($1) ORDER BY indexname
"""
_TASKS = """
INSERT INTO headrace.tasks (id, user_id, task_type, title, status, payload, created_at, finished_at)
SELECT 'tsk_' || n, $1, 'noop', '', CASE WHEN n % 100 = 0 THEN 'FAILED' ELSE 'QUEUED' END, '{}',
       now() - n * interval '1 second', CASE WHEN n % 100 = 0 THEN now() END
FROM generate_series(1, 20000) AS n
"""


@pytest.fixture
def owner(server: TestServer, db: Database) -> DatabaseConfig:
    return DatabaseConfig(server.url(db.config.url.rpartition("/")[2].partition("?")[0]))


async def definitions(owner: DatabaseConfig) -> list[tuple[str, str]]:
    connection = await asyncpg.connect(owner.url)
    try:
        return [(row[0], row[1]) for row in await connection.fetch(_DEFINITIONS, list(lean.INDEXES))]
    finally:
        await connection.close()


async def test_dropped_and_made_again_they_are_the_same(owner: DatabaseConfig) -> None:
    before = await definitions(owner)
    assert {name for name, _ in before} == set(lean.INDEXES)
    for _ in range(2):  # twice: both verbs are idempotent
        assert all(each.bytes is None for each in await lean.drop(owner))
    assert await definitions(owner) == []
    for _ in range(2):
        assert all(each.valid for each in await lean.restore(owner))
    assert await definitions(owner) == before


async def test_without_them_the_end_of_a_task_is_a_hot_update(owner: DatabaseConfig) -> None:
    connection = await asyncpg.connect(owner.url)
    try:
        for dropped in (False, True):
            if dropped:
                await lean.drop(owner)
            await connection.execute("DELETE FROM headrace.tasks")
            await connection.execute("VACUUM headrace.tasks")
            await connection.execute(_TASKS, ids.SYSTEM_USER)
            before = await _hot(connection)
            await connection.execute(
                "UPDATE headrace.tasks SET status = 'SUCCEEDED', updated_at = now(), finished_at = now() "
                "WHERE id IN (SELECT id FROM headrace.tasks WHERE status = 'QUEUED' ORDER BY created_at LIMIT 1000)"
            )
            hot = await _hot(connection) - before
            assert (hot > 500) if dropped else (hot == 0), (dropped, hot)
    finally:
        await connection.close()


async def _hot(connection: Any) -> int:
    await connection.execute("SELECT pg_stat_force_next_flush()")
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    found: int = await connection.fetchval(
        "SELECT n_tup_hot_upd FROM pg_stat_all_tables WHERE relid = 'headrace.tasks'::regclass"
    )
    return found


@pytest.mark.parametrize(
    ("where", "index"),
    [("user_id = 'u_00000000000000000000000000' AND status = 'FAILED'", "idx_tasks_(user_)?created_at"),
     ("status = 'FAILED'", "idx_tasks_created_at")],
)  # fmt: skip
async def test_lists_by_status_still_use_an_index(owner: DatabaseConfig, where: str, index: str) -> None:
    await lean.drop(owner)
    connection = await asyncpg.connect(owner.url)
    try:
        await connection.execute(_TASKS, ids.SYSTEM_USER)
        await connection.execute("ANALYZE headrace.tasks")
        plan = await connection.fetch(
            f"EXPLAIN SELECT id FROM headrace.tasks WHERE {where} ORDER BY created_at DESC LIMIT 20"
        )
        shown = "\n".join(row[0] for row in plan)
        assert re.search(index, shown), shown
        assert "Seq Scan" not in shown
    finally:
        await connection.close()


async def test_an_interrupted_build_is_made_anew(owner: DatabaseConfig) -> None:
    connection = await asyncpg.connect(owner.url)
    try:
        await connection.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'headrace.idx_tasks_status_updated_at'::regclass"
        )
    finally:
        await connection.close()
    assert not all(each.valid for each in await lean.read(owner))
    assert all(each.valid for each in await lean.restore(owner))

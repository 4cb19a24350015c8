"""The statements of schedules stay with their indexes, whatever the size of the history. S-16"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.database import Tx
from headrace.schedules import following
from headrace.schedules.model import ExecutionState, Trigger
from headrace.schedules.store import executions, firing
from headrace.schedules.store.executions import ExecutionFilter

FILL = """
WITH schedules AS (
  INSERT INTO headrace.scheduled_tasks (uid, name, type, is_recurring, "interval", next_run)
  SELECT 'sch_' || n, 'name ' || n, 'job', true, 60, now() + interval '1 hour' FROM generate_series(1, 200) AS n
)
INSERT INTO headrace.task_executions
  (task_uid, user_id, task_name, task_type, execution_uid, scheduled_at, state, trigger_type, trigger_by, run_by,
   started_at, finished_at)
SELECT 'sch_' || 1 + n % 200, CASE WHEN n % 200 < 20 THEN 'u_few' ELSE 'u_many' END, 'name',
       CASE WHEN n = 7 THEN 'rare' ELSE 'job' END,
       'exe_' || lpad(n::text, 26, '0'),
       '2026-01-01'::timestamptz + n / 200 * interval '1 minute',
       CASE WHEN n % 333 = 0 THEN 'failure' ELSE 'success' END,
       CASE WHEN n % 499 = 0 THEN 'manual' ELSE 'scheduled' END, 'u_1', 'w', now(), now()
FROM generate_series(1, 20000) AS n
"""


@pytest.fixture
async def filled(owner_tx: Tx) -> Tx:
    await owner_tx.execute("SET LOCAL session_replication_role = replica")
    await owner_tx.execute(FILL)
    await owner_tx.execute("ANALYZE headrace.task_executions")
    await owner_tx.execute("ANALYZE headrace.scheduled_tasks")
    return owner_tx


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", ()) for node in nodes(child))]


async def plan_of(tx: Tx, sql: str, *args: object) -> list[dict[str, Any]]:
    import json

    text = await tx.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", *args)
    return nodes(json.loads(text)[0]["Plan"])


EARLY = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)  # of a hundred minutes


LISTS = [
    (ExecutionFilter(None), "idx_task_executions_scheduled_at"),
    (ExecutionFilter("u_few", "sch_7"), "idx_task_executions_task_uid"),
    (ExecutionFilter(None, "sch_7", [ExecutionState.SUCCESS], Trigger.SCHEDULED), "idx_task_executions_task_uid"),
    (ExecutionFilter(None, None, [ExecutionState.FAILURE]), "idx_task_executions_state"),
    (ExecutionFilter(None, None, [ExecutionState.FAILURE, ExecutionState.TIMEOUT]), "idx_task_executions_state"),
    (ExecutionFilter(None, None, None, Trigger.MANUAL), "idx_task_executions_manual"),
    # A user's own, with states and without, however many others there are.
    (ExecutionFilter("u_few"), "idx_task_executions_user_state"),
    (ExecutionFilter("u_few", since=EARLY, until=EARLY + timedelta(minutes=30)), "idx_task_executions_user_state"),
    (ExecutionFilter("u_nobody"), "idx_task_executions_user_state"),
    (ExecutionFilter("u_few", None, [ExecutionState.FAILURE]), "idx_task_executions_user_state"),
    (ExecutionFilter("u_few", None, None, Trigger.SCHEDULED, "job"), "idx_task_executions_user_state"),
    (ExecutionFilter("u_few", None, None, Trigger.MANUAL), "idx_task_executions_user_manual"),
    # Of one type among everybody's: one that is rare, or that nothing ran, is not looked for row by row.
    (ExecutionFilter(None, type="rare"), "idx_task_executions_type_state"),
    (ExecutionFilter(None, type="nothing"), "idx_task_executions_type_state"),
    (ExecutionFilter(None, None, [ExecutionState.SUCCESS], type="rare"), "idx_task_executions_type_state"),
    (ExecutionFilter(None, None, None, Trigger.MANUAL, "rare"), "idx_task_executions_manual"),
    (ExecutionFilter(None, since=EARLY, until=EARLY + timedelta(minutes=30)), "idx_task_executions_scheduled_at"),
]


async def test_a_list_walks_one_index_and_not_far(filled: Tx) -> None:
    for wanted, index in LISTS:  # in one test: the rows take longer than the lists
        sql, args = executions.listing(wanted, limit=21)
        seen = await plan_of(filled, sql, *args)
        scans = [node for node in seen if node.get("Relation Name") == "task_executions"]
        # The hundred runs of one schedule may also be gathered and sorted.
        assert {node["Node Type"] for node in scans} <= {"Index Scan", "Bitmap Heap Scan"}, wanted
        names = {node["Index Name"] for node in seen if "task_executions" in node.get("Index Name", "")}
        assert names == {index}, wanted
        assert sum(node["Actual Rows"] for node in scans) <= executions.MAX_SCANNED_ROWS, wanted


RUNNING = """
WITH run AS (
  UPDATE headrace.task_executions SET state = 'running', finished_at = NULL, task_id = 'tsk_' || task_uid
  WHERE execution_uid IN (SELECT min(execution_uid) FROM headrace.task_executions GROUP BY task_uid LIMIT 5)
  RETURNING task_id, task_uid
)
INSERT INTO headrace.tasks (id, user_id, task_type, title, schedule_uid)
SELECT task_id, 'u_few', 'job', 'name', task_uid FROM run
RETURNING id, schedule_uid
"""
LOOKED_AT = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'scheduled_tasks'"


async def test_ends_look_at_their_own_schedules_only(filled: Tx) -> None:
    task_ids, uids = zip(*await filled.fetch(RUNNING), strict=True)
    before = await filled.fetchval(LOOKED_AT)
    nothing = [None] * 5
    ends = (task_ids, uids, nothing, nothing, nothing, ["success"] * 5, [False] * 5)
    assert len(await filled.fetch(following.FOLLOW, *ends, nothing, nothing, nothing, nothing)) == 5
    assert await filled.fetchval(LOOKED_AT) - before <= 5 * 3  # to lock it, to count, and the row that was counted


async def test_looking_for_what_is_due_costs_nothing_when_nothing_is(filled: Tx) -> None:
    seen = await plan_of(filled, firing.LOCK_DUE, None, 500, [])
    assert {node.get("Index Name") for node in seen if "Relation Name" in node} == {"idx_scheduled_tasks_next_run"}
    found = await executions.list_executions(filled, ExecutionFilter(None, "sch_7"), limit=3)
    assert [run.scheduled_at for run in found.items] == sorted((run.scheduled_at for run in found.items), reverse=True)


async def test_pages_that_find_little_say_where_to_go_on(filled: Tx) -> None:
    wanted = ExecutionFilter("u_many", type="nothing")
    mark, pages = None, 0
    while True:
        found = await executions.list_executions(filled, wanted, older_than=mark, limit=20)
        pages += 1
        assert found.items == []
        if found.resume is None:
            break
        mark = found.resume
    assert pages == 18_000 // executions.MAX_SCANNED_ROWS  # the last is not full: some failed, and are walked beside


async def test_the_one_run_of_a_type_is_on_the_first_page(filled: Tx) -> None:
    found = await executions.list_executions(filled, ExecutionFilter(None, type="rare"), limit=20)
    assert [run.task_type for run in found.items] == ["rare"]
    assert found.resume is None


async def test_looking_for_what_must_make_room_costs_nothing_where_nothing_must(filled: Tx) -> None:
    await filled.execute("UPDATE headrace.scheduled_tasks SET overlap_policy = 'cancel_running' WHERE uid = 'sch_7'")
    await filled.execute("ANALYZE headrace.scheduled_tasks")
    read = "SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relid = 'headrace.task_executions'::regclass"
    before = await filled.fetchval(read)
    for _ in range(8):  # also with the plan that a session keeps
        assert await firing.list_superseded(filled, None, most=200) == []
        assert await firing.count_waiting(filled, ["sch_7"], [10]) == {"sch_7": 0}
    assert await filled.fetchval(read) == before

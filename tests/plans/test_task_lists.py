"""What people read of tasks comes by an index and touches a bounded number of rows, whatever they ask for. D-07

At tens of thousands of rows in every run, and at a million in the slow one: most of one user's, most of them waiting.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.database import Tx
from headrace.tasks.model import TaskStatus
from headrace.tasks.store import counts, moves, obstacles, queues, tasks, watching
from headrace.tasks.store.counts import COUNT_WALK, Counted
from headrace.tasks.store.tasks import Filter
from headrace.walks import ROWS as WALK
from tests.conftest import TestServer, rolled_back
from tests.plans.filled import filled

USER = "u_busy"
TASK = "tsk_000000000000000000000777"

# Of ten tasks nine are the busy user's. Of a hundred one is of the rare type, one failed, and a third is deleted. A
# tenth waits, in ten lanes; two hundred of those run, and some of them take up slots of a limit.
ROWS = """
INSERT INTO headrace.users (id, username, password_hash)
SELECT 'u_' || n, 'user-' || n, 'x' FROM generate_series(1, 100) AS n UNION ALL SELECT 'u_busy', 'busy', 'x';

INSERT INTO headrace.tasks (id, user_id, task_type, title, queue, status, finished_at, created_at, deleted_at,
                            queue_seq)
SELECT 'tsk_' || lpad(n::text, 24, '0'), CASE WHEN n % 10 < 9 THEN 'u_busy' ELSE 'u_' || n / 10 % 100 + 1 END,
       CASE WHEN n % 100 = 7 THEN 'rare' ELSE 'common' END, 't', CASE WHEN n % 100 = 8 THEN 'slow' ELSE 'default' END,
       status, CASE WHEN status IN ('SUCCEEDED', 'FAILED') THEN now() END, now() - (:rows - n) * interval '1 s',
       CASE WHEN status = 'SUCCEEDED' AND n % 3 = 0 THEN now() END, CASE WHEN status = 'QUEUED' THEN n END
FROM generate_series(1, :rows) AS n,
     LATERAL (
       SELECT CASE WHEN n % 10 = 1 THEN 'QUEUED' WHEN n % 100 = 2 THEN 'FAILED' ELSE 'SUCCEEDED' END
     ) AS s (status);

INSERT INTO headrace.task_logs (task_id, status, message)
SELECT 'tsk_' || lpad(n::text, 24, '0'), 'SUCCEEDED', 'done' FROM generate_series(1, :rows) AS n;
INSERT INTO headrace.task_steps (task_id, step_name, status)
SELECT 'tsk_' || lpad(n::text, 24, '0'), 'render', 'SUCCESS' FROM generate_series(1, :rows, 10) AS n;

INSERT INTO headrace.workers (id, host, pid, types, concurrency, lease)
SELECT 'wrk_' || n, 'h', 1, '{common}', 10, '15 s' FROM generate_series(1, 20) AS n;
SELECT headrace.assign_lane('q' || n % 5, 'common', 'u_' || n, '', '{}', false) FROM generate_series(1, 10) AS n;
INSERT INTO headrace.queues (name, max_running) VALUES ('q1', 100);
INSERT INTO headrace.task_queue (seq, run_at, lane_id, route_id, precedence, task_id, worker, claimed_at, limited)
SELECT queue_seq, tasks.created_at, lane.id, lane.route_id, 0, tasks.id, CASE WHEN held THEN queue_seq % 20 + 1 END,
       CASE WHEN held THEN now() END, held AND queue_seq % 3 = 0
FROM headrace.tasks
CROSS JOIN LATERAL (SELECT queue_seq <= 2000 AS held) AS h
JOIN headrace.task_lanes AS lane ON lane.id = queue_seq % 10 + 1
WHERE queue_seq IS NOT NULL;
"""


@pytest.fixture(scope="module")
def thousands(server: TestServer, template: str) -> Iterator[str]:
    yield from filled(server, template, 60_000, ROWS, name="lists")


@pytest.fixture(scope="module")
def a_million(server: TestServer, template: str) -> Iterator[str]:
    yield from filled(server, template, 1_000_000, ROWS, name="lists")


def filters() -> Iterator[tuple[Filter, Any]]:
    """Every combination of what can be asked for, on the first page and on a later one."""
    now = datetime.now(UTC)
    statuses = (None, [TaskStatus.SUCCEEDED], [TaskStatus.FAILED], [TaskStatus.QUEUED, TaskStatus.RUNNING])
    spans = ((None, None), (now - timedelta(hours=3), None), (None, now - timedelta(hours=3)))
    marks = (None, (now - timedelta(hours=6), TASK))
    for user, status, kind, queue, span, mark in itertools.product(
        (USER, "u_7", None), statuses, (None, "rare"), (None, "slow"), spans, marks
    ):
        yield Filter(user, status, kind, queue, *span), mark


async def plan_of(tx: Tx, sql: str, args: Sequence[object]) -> dict[str, Any]:
    rows = await tx.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", *args)
    plan: dict[str, Any] = json.loads(rows[0][0])[0]["Plan"]
    return plan


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def complaints(plan: dict[str, Any], *, most_rows: int) -> list[str]:
    """What reads a table through, and how many rows were fetched if they are too many."""
    scans = [node for node in nodes(plan) if "Relation Name" in node]
    through = [f"reads {node['Relation Name']} through" for node in scans if _is_through(node)]
    fetched = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in scans
    )
    return [*through, *([f"fetches {fetched} rows"] if fetched > most_rows else [])]


def _is_through(node: dict[str, Any]) -> bool:
    # The small tables (types, queues, lanes, workers) may be read as a whole; these may not.
    large = ("tasks", "task_queue", "task_logs", "task_steps")
    return node["Node Type"] == "Seq Scan" and node["Relation Name"] in large


async def check_lists(url: str) -> None:
    found: list[str] = []
    async with rolled_back(url) as tx:
        for mode in ("force_custom_plan", "force_generic_plan"):
            await tx.execute(f"SET LOCAL plan_cache_mode = {mode}")
            for wanted, mark in filters():
                sql, args = tasks.listing(wanted, older_than=mark, limit=21)
                branches = 1 if wanted.user_id is None or wanted.statuses is None else len(wanted.statuses)
                # Each row of a walk may be looked up in the queue and among the workers.
                most = 3 * WALK * branches + 1000
                found += [
                    f"{wanted} {mode}: {each}" for each in complaints(await plan_of(tx, sql, args), most_rows=most)
                ]
    assert not found, "\n".join(found)


@pytest.mark.both
async def test_every_list_walks_along_an_index(server: TestServer, thousands: str) -> None:  # D-07
    await check_lists(server.url(thousands, role="headrace_app"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_every_list_walks_along_an_index_at_a_million_rows(server: TestServer, a_million: str) -> None:  # D-07
    await check_lists(server.url(a_million, role="headrace_app"))


async def test_what_never_was_is_not_looked_for_among_all(server: TestServer, thousands: str) -> None:
    async with rolled_back(server.url(thousands, role="headrace_app")) as tx:
        for wanted in (Filter(None, queue="nosuch"), Filter(USER, task_type="nosuch"), Filter(None, queue="q1")):
            found = await tasks.list_tasks(tx, wanted, limit=21)
            # Of q1 there are lanes: the page says where to go on.
            assert (found.items, found.resume is None) == ([], wanted.queue != "q1"), wanted


async def check_counts(url: str, *, most_rows: int) -> None:
    found: list[str] = []
    async with rolled_back(url) as tx:
        for wanted in {str(wanted): wanted for wanted, _ in filters()}.values():
            for statement in (counts.counting(wanted), counts.counting_by_index(wanted, most=most_rows)):
                plan = await plan_of(tx, *statement)
                scans = [node for node in nodes(plan) if node.get("Relation Name") == "tasks"]
                fetched = sum(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in scans)
                # Each index scan fetches a few rows more than are asked for.
                if fetched > 1.1 * most_rows:
                    found.append(f"{wanted}: reads {fetched} rows: {statement[0]}")
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_a_count_reads_a_bounded_number_of_a_million_rows(server: TestServer, a_million: str) -> None:  # D-07
    """`/v1/tasks/count?type=nosuch` once read ten million."""
    await check_counts(server.url(a_million, role="headrace_app"), most_rows=COUNT_WALK)


@pytest.mark.both
async def test_a_count_reads_a_bounded_number_of_rows(
    server: TestServer, thousands: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # D-07
    monkeypatch.setattr(counts, "COUNT_WALK", 10_000)
    await check_counts(server.url(thousands, role="headrace_app"), most_rows=10_000)


async def test_a_count_that_ends_early_says_so(
    server: TestServer, thousands: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "COUNT_WALK", 5000)
    async with rolled_back(server.url(thousands, role="headrace_app")) as tx:
        assert await counts.count_tasks(tx, Filter("u_7"), most=100_000) == Counted(40, exact=True)
        rare = await counts.count_tasks(tx, Filter(USER, task_type="rare"), most=100_000)
        assert not rare.exact
        assert 0 <= rare.count <= 100
        assert await counts.count_tasks(tx, Filter("u_7"), most=30) == Counted(30, exact=False)


PLAIN = {"user_id": USER}
FEW = [
    ({}, "idx_tasks_user_created_at"),
    ({"statuses": [TaskStatus.SUCCEEDED]}, "idx_tasks_user_status_created_at"),
    ({"statuses": [TaskStatus.FAILED]}, "idx_tasks_user_status_created_at"),
    ({"statuses": [TaskStatus.FAILED, TaskStatus.QUEUED]}, "idx_tasks_user_status_created_at"),
    ({"user_id": None}, "idx_tasks_created_at"),
]


@pytest.mark.both
@pytest.mark.parametrize(("asked", "index"), FEW, ids=lambda value: str(value))
async def test_the_lists_that_an_index_is_for_read_hardly_more_than_they_show(
    server: TestServer, thousands: str, asked: dict[str, Any], index: str
) -> None:  # D-07
    async with rolled_back(server.url(thousands, role="headrace_app")) as tx:
        sql, args = tasks.listing(Filter(**PLAIN | asked), limit=21)
        plan = await plan_of(tx, sql, args)
        assert {node["Index Name"] for node in nodes(plan) if node.get("Relation Name") == "tasks"} == {index}
        assert complaints(plan, most_rows=300) == []


LOOK_UPS: dict[str, tuple[str, tuple[object, ...]]] = {
    "a task": (tasks.FIND_TASK, (TASK,)),
    "its log": (tasks.LIST_LOGS, (TASK, 0, 21)),
    "its last line": (tasks.LAST_LOG_ID, (TASK,)),
    "its steps": (tasks.LIST_STEPS, (TASK, 0, 21, False)),
    "its failed steps": (tasks.LIST_STEPS, (TASK, 0, 21, True)),
    "its place": (moves.LOCK_PLACE, (TASK,)),
    "where watched tasks stand": (watching.FIND_POSITIONS, ([TASK] * 50,)),
    "which watched tasks have changed": (watching.FIND_CHANGED, ([{"number": n, "id": TASK} for n in range(50)],)),
    "where it stands in the queue": (obstacles.FIND_POSITION, (TASK,)),
    "who takes up a limit": (obstacles.FIND_HOLDERS, ("queue", "q1", USER)),
    "what goes first": (obstacles.COUNT_AHEAD, (0, 5, datetime.now(UTC), 10**9, ["common"], 1)),
    "the names of queues": (queues.LIST_RULES, (100,)),
    "what waits": (queues.COUNT_WAITING, (None,)),
    "what waits, for figures": (queues.COUNT_BACKLOG, (None,)),
    "what waits of one user": (queues.COUNT_WAITING, (USER,)),
}


async def check_look_ups(url: str, look_ups: dict[str, tuple[str, tuple[object, ...]]]) -> None:
    async with rolled_back(url) as tx:
        for mode in ("force_custom_plan", "force_generic_plan"):
            await tx.execute(f"SET LOCAL plan_cache_mode = {mode}")
            found = [
                f"{name}: {each}"
                for name, (sql, args) in look_ups.items()
                for each in complaints(await plan_of(tx, sql, args), most_rows=queues.MOST_ROWS + 3000)
            ]
            assert not found, "\n".join(found)


@pytest.mark.both
async def test_look_ups_use_their_index(server: TestServer, thousands: str) -> None:
    await check_look_ups(server.url(thousands, role="headrace_app"), LOOK_UPS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_look_ups_use_their_index_at_a_million_rows(server: TestServer, a_million: str) -> None:
    await check_look_ups(server.url(a_million, role="headrace_app"), LOOK_UPS)

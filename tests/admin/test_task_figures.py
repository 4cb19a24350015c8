"""Figures of tasks, workers and schedules at `/metrics`, and whoever relies on their names: docs, board, alarms."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headrace.admin import task_figures
from headrace.admin.figures import HealthFigures, TaskFigures
from headrace.admin.task_figures import read_task_figures
from headrace.assembly.storage_check import StorageWatch
from headrace.database import Database, Tx
from headrace.figures import OTHER, Histogram, Kind, Meters
from headrace.outbox.loop import LoopConfig, RelayLoop
from headrace.outbox.relay import Relay, RelayConfig
from headrace.schedules.loop import Scheduler
from headrace.storage import Storage, StorageConfig
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Snooze
from headrace.tasks.execution import Backoff
from headrace.tasks.worker.figures import BOUNDS, Figures
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from headrace.web.metrics import render
from tests.edge import stand
from tests.tasks.conftest import Bench


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Bench:
    return Bench(db, tmp_path)


ROOT = Path(__file__).parents[2]
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, tuple(sorted(labels.items()))]


async def test_a_worker_counts_what_it_began_and_how_it_ended(bench: Bench) -> None:
    tried: list[int] = []

    @bench.registry.task("flaky", backoff=Backoff(first=timedelta(0)), max_attempts=3)
    async def flaky(context: TaskContext, _: Any) -> None:
        tried.append(context.attempt)
        if context.attempt == 1:
            raise ValueError("once")
        if context.attempt == 2:
            raise Snooze(timedelta(0))

    @bench.registry.task("bad", max_attempts=1)
    async def bad(_: TaskContext, __: Any) -> None:
        raise ValueError("always")

    ids = [await bench.submit("flaky"), await bench.submit("bad")]
    async with bench.working() as worker:
        async with asyncio.timeout(60):
            while {(await bench.row(task_id))["status"] for task_id in ids} != {"SUCCEEDED", "FAILED"}:
                await asyncio.sleep(0.02)
        async with asyncio.timeout(60):  # what is in the database is counted right after
            while worker.figures.finished < 4:
                await asyncio.sleep(0.02)
        found = samples(render(worker.read_figures()).decode())
        in_database = samples(render(await TaskFigures(bench.db)()).decode())
    assert value(found, "headrace_tasks_started_total", type="flaky") == 3
    assert value(found, "headrace_tasks_finished_total", type="flaky", outcome="succeeded") == 1
    assert value(found, "headrace_tasks_finished_total", type="bad", outcome="failed") == 1
    assert value(found, "headrace_tasks_retried_total", type="flaky", reason="failed") == 1
    assert value(found, "headrace_tasks_retried_total", type="flaky", reason="snoozed") == 1
    assert value(found, "headrace_task_duration_seconds_count", type="flaky") == 3
    assert value(found, "headrace_task_duration_seconds_bucket", type="flaky", le="+Inf") == 3
    assert value(found, "headrace_worker_process_slots", isolation="async", state="total") == 10
    assert value(found, "headrace_worker_leases_lost_total") == value(found, "headrace_workers_reaped_total") == 0
    assert value(in_database, "headrace_workers", state="alive") == 1
    assert value(in_database, "headrace_worker_slots", state="total") == 10


async def test_what_waits_is_told_by_queue_and_type(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mail", "report"):
        bench.registry.task(name)(_nothing)
    for name in ("mail", "mail", "report"):
        await bench.submit(name, queue="slow")
    await bench.submit("mail", queue="fast", run_at=datetime.now(UTC) + timedelta(hours=1))
    async with bench.db.transaction() as tx:
        await tx.execute("INSERT INTO headrace.queues (name, paused_at) VALUES ('slow', now())")
        await tx.execute("UPDATE headrace.task_queue SET run_at = run_at - interval '90 s' WHERE run_at <= now()")
        figures = await read_task_figures(tx)
        found = samples(render(figures).decode())
        monkeypatch.setattr(task_figures, "MAX_SERIES", 1)
        few = samples(render(await read_task_figures(tx)).decode())
    assert value(found, "headrace_queue_tasks", queue="slow", type="mail", state="waiting") == 2
    assert value(found, "headrace_queue_tasks", queue="slow", type="report", state="waiting") == 1
    assert value(found, "headrace_queue_tasks", queue="fast", type="mail", state="delayed") == 1
    assert 90 <= value(found, "headrace_queue_oldest_seconds", queue="slow", type="mail") < 600
    assert value(found, "headrace_queue_oldest_seconds", queue="fast", type="mail") == 0
    assert value(found, "headrace_queue_paused", queue="slow") == value(found, "headrace_queue_tasks_exact") == 1
    # Whoever invents types by the thousand gets no more series.
    assert value(few, "headrace_queue_tasks", queue=OTHER, type=OTHER, state="waiting") == 1
    assert value(few, "headrace_queue_tasks", queue=OTHER, type=OTHER, state="delayed") == 1
    assert len([name for name, _ in few if name == "headrace_queue_tasks"]) == 4


async def _nothing(_: TaskContext, __: Any) -> None: ...


def test_two_parts_of_a_process_that_count_the_same_are_added_up() -> None:
    one, other = Figures(["a", "b"]), Figures(["a"])
    for each in (one, other):
        each.began("a")
        each.ended("a", 0.02)
    one.began("invented")
    meters = Meters()
    meters.add(one.read)
    meters.add(other.read)
    found = samples(render(meters.read()).decode())
    assert value(found, "headrace_tasks_started_total", type="a") == 2
    assert value(found, "headrace_tasks_started_total", type=OTHER) == 1
    assert value(found, "headrace_task_duration_seconds_bucket", type="a", le="0.01") == 0
    assert value(found, "headrace_task_duration_seconds_bucket", type="a", le="0.025") == 2
    assert value(found, "headrace_task_duration_seconds_sum", type="a") == pytest.approx(0.04)
    slow = Histogram(BOUNDS)
    slow.observe(10**6)
    assert slow.counts[-1] == 1


# -- names that others rely on


@pytest.fixture
async def names(bench: Bench) -> dict[str, str]:
    """Every figure that any role shows, by kind."""
    meters = Meters("up", "1.0")
    scheduler = Scheduler(bench.db, bench.submitter)
    relay = RelayLoop(bench.db, Relay(bench.db, [], RelayConfig()), [], [], LoopConfig())
    storage = StorageWatch(Storage(StorageConfig("s3://uploads/files")))  # never asked here
    for part in (bench.worker(), scheduler, relay, storage):
        meters.add(part.read_figures)
    app = create_app(stand.services(bench.db, figures=HealthFigures(bench.db), meters=meters), WebConfig())
    async with stand.client(app) as api:
        text = (await api.get("/metrics")).text
    return {line.split()[2]: line.split()[3] for line in text.splitlines() if line.startswith("# TYPE headrace_")}


def named_in(text: str) -> set[str]:
    return set(re.findall(r"\bheadrace_[a-z_]+", text))


def base(name: str) -> str:
    return re.sub(r"_(bucket|sum|count)$", "", name)


async def test_docs_board_and_alarms_name_the_figures_there_are(names: dict[str, str]) -> None:
    shown = set(names)
    documented = named_in((ROOT / "docs/howto/metrics.md").read_text("utf-8"))
    rows = re.findall(r"^\| `(headrace_[a-z_]+)", (ROOT / "docs/howto/metrics.md").read_text("utf-8"), re.MULTILINE)
    assert shown - set(rows) == set(), "say in docs/howto/metrics.md what these mean"
    # Only seen after something happened: the ledger was verified, connections are watched.
    late = {name for name in rows if name.startswith(("headrace_ledger_", "headrace_http_connections"))}
    assert set(rows) - shown - late == set()
    assert {base(name) for name in documented} <= shown | late
    board = json.loads((ROOT / "deploy/monitoring/grafana.json").read_text("utf-8"))
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert all(panel["targets"] and panel["title"] and panel["description"] for panel in panels)
    for expr in [target["expr"] for panel in panels for target in panel["targets"]]:
        assert named_in(expr), expr
        assert {base(name) for name in named_in(expr)} <= shown | late, expr
        # A counter is read as a rate, or it says nothing but how long a process has run.
        for name in named_in(expr):
            assert names.get(name) != Kind.COUNTER or re.search(rf"(rate|increase)\({name}\b", expr), expr
    alarms = (ROOT / "deploy/monitoring/alerts.yml").read_text("utf-8")
    assert named_in(alarms)
    assert {base(name) for name in named_in(alarms)} <= shown | late


async def test_figures_do_not_read_what_waits(tx: Tx) -> None:
    """The plans at a million rows are looked at by tests/plans; here, that nothing else reads whole tables."""
    for sql in (task_figures.COUNT_WORKERS, task_figures.READ_SCHEDULES, task_figures.LIST_PAUSED):
        plan = json.loads(await tx.fetchval(f"EXPLAIN (FORMAT JSON) {sql}"))[0]["Plan"]
        assert "task_queue" not in json.dumps(plan)
    await tx.execute("SET LOCAL enable_seqscan = off")
    plan = await tx.fetchval(f"EXPLAIN (FORMAT JSON) {task_figures.READ_SCHEDULES}")
    assert "idx_task_executions_waiting" in plan

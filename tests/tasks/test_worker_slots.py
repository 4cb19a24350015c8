"""Slots for each kind of isolation: a task is claimed only when what it runs in is free."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

from headrace.tasks.context import BlockingTaskContext, TaskContext
from headrace.tasks.worker.config import Pool
from tests.tasks.conftest import Bench

HELD = """
SELECT lane.task_type, count(*) AS held
FROM headrace.task_queue AS q
JOIN headrace.task_lanes AS lane ON lane.id = q.lane_id
WHERE q.worker IS NOT NULL
GROUP BY 1
"""


async def held(bench: Bench) -> dict[str, int]:
    return {row["task_type"]: row["held"] for row in await bench.db.fetch_alone(HELD)}


async def test_tasks_that_wait_for_a_process_keep_no_slot_from_others(bench: Bench) -> None:
    """240 of them once kept 220 no-ops and 272 runs of schedules waiting for 25 s and more."""
    release = threading.Event()

    # A thread stands for a process here: the gate is in this one.
    @bench.registry.task("slow")
    def slow(context: BlockingTaskContext, payload: Any) -> None:
        while not release.wait(0.01) and not context.canceled:
            pass

    @bench.registry.task("quick")
    async def quick(context: TaskContext, payload: Any) -> None: ...

    waiting = [await bench.submit("slow", priority=100) for _ in range(60)]
    async with bench.working(concurrency=50, threads=2, poll_every=timedelta(minutes=10)):
        async with asyncio.timeout(60):
            while (await held(bench)).get("slow") != 2:
                await asyncio.sleep(0.01)
        for _ in range(3):
            rows = await bench.over(*[await bench.submit("quick") for _ in range(100)])
            assert {row["status"] for row in rows} == {"SUCCEEDED"}
            assert await held(bench) == {"slow": 2}  # and none is claimed that cannot start
        release.set()
        await bench.over(*waiting, seconds=120)


async def test_a_pool_limits_its_types_and_no_others(bench: Bench) -> None:
    """Removal shares a worker with a program: it takes no more files than it has processes."""
    release, running = asyncio.Event(), 0

    @bench.registry.task("file")
    async def file(context: TaskContext, payload: Any) -> None:
        nonlocal running
        running += 1
        assert running <= 2
        await release.wait()
        running -= 1

    @bench.registry.task("quick")
    async def quick(context: TaskContext, payload: Any) -> None: ...

    files = [await bench.submit("file", priority=100) for _ in range(6)]
    pools = {"files": Pool(2, frozenset({"file"}))}
    async with bench.working(concurrency=50, pools=pools, poll_every=timedelta(minutes=10)):
        rows = await bench.over(*[await bench.submit("quick") for _ in range(60)])
        assert {row["status"] for row in rows} == {"SUCCEEDED"}
        assert await held(bench) == {"file": 2}
        (worker,) = await bench.db.fetch_alone("SELECT slots FROM headrace.workers WHERE ended_at IS NULL")
        assert {name: kind["slots"] for name, kind in worker["slots"].items()} == {"async": 50, "files": 2}
        release.set()
        rows = await bench.over(*files)
    assert {row["status"] for row in rows} == {"SUCCEEDED"}


CONNECTIONS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database()
  AND (application_name LIKE 'headrace listener%' OR application_name LIKE 'headrace heartbeat%')
"""


async def _pids(bench: Bench) -> set[int]:
    return {row["pid"] for row in await bench.db.fetch_alone(CONNECTIONS)}


async def test_an_idle_worker_has_one_connection_beside_its_pool(bench: Bench) -> None:
    """Its listener had another, and removal two more: ten workers took 66 of PostgreSQL's 100."""

    @bench.registry.task("quick")
    async def quick(context: TaskContext, payload: Any) -> None: ...

    before = await _pids(bench)
    async with bench.working(poll_every=timedelta(minutes=10)):
        async with asyncio.timeout(60):
            while not (await _pids(bench) - before):  # a worker that starts looks for tasks before it is connected
                await asyncio.sleep(0.02)
        await bench.over(await bench.submit("quick"))  # the notification arrived over it
        now = await _pids(bench)
    assert len(now - before) == 1

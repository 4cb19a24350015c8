"""Slots for each kind of isolation: a task is claimed only when what it runs in is free."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

from headrace.tasks.context import BlockingTaskContext, TaskContext
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

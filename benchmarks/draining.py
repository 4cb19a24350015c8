"""How fast workers empty a queue."""

import asyncio
import time
from contextlib import ExitStack

import asyncpg

from benchmarks.processes import Worker

EMPTY = {
    "ours": "SELECT NOT EXISTS (SELECT FROM headrace.task_queue)",
    "raw-narrow": "SELECT NOT EXISTS (SELECT FROM headrace.task_queue)",
    "raw-plain": "SELECT NOT EXISTS (SELECT FROM headrace.tasks WHERE status <> 'SUCCEEDED')",
    "pgqueuer": "SELECT NOT EXISTS (SELECT FROM pgqueuer)",
    "procrastinate": "SELECT NOT EXISTS (SELECT FROM procrastinate_jobs)",
}


# Each attempt writes a line, so this counter tells how far they are; looking for what is left would take the time of
# those who work.
WRITTEN = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM headrace.task_logs_id_seq"
PATIENCE_S = 120


async def drain_rate(url: str, who: str, count: int, *, processes: int = 1, done: str | None = None) -> float:
    """Tasks a second of ``processes`` workers over what is waiting, until so many are done."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(who, url)) for _ in range(processes)]
        connection = await asyncpg.connect(url)
        ours = who == "ours" or who.startswith("raw")
        before = await connection.fetchval(WRITTEN)
        started = time.perf_counter()
        for worker in workers:
            worker.go()
        while (ours and await connection.fetchval(WRITTEN) < before + count) or not await connection.fetchval(
            done or EMPTY[who]
        ):
            if all(worker.ended for worker in workers):
                raise SystemExit(f"{who}: the workers ended before the work did")
            if time.perf_counter() - started > PATIENCE_S:
                raise SystemExit(f"{who}: not done after {PATIENCE_S} s")
            await asyncio.sleep(0.02)
        seconds = time.perf_counter() - started
        await connection.close()
        return count / seconds


async def execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()

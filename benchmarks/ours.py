"""Headrace itself, as a program would use it."""

import asyncio
import time
from datetime import timedelta
from typing import Any

from headrace import Headrace
from headrace.assembly.followers import followers
from headrace.database import Database, DatabaseConfig
from headrace.tasks.context import TaskContext
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker

registry = Registry()


@registry.task("noop", events=False)
async def noop(_context: TaskContext, payload: Any) -> Any:
    return {"at": time.time_ns(), "n": payload["n"]}


def as_app(url: str) -> DatabaseConfig:
    """The role the product runs as, not the superuser that resets the tables."""
    return DatabaseConfig(f"{url}?role=headrace_app", role="bench", pool_max=6, statement_timeout=timedelta(minutes=5))


@registry.task("noop.told", submit="users")
async def noop_told(context: TaskContext, payload: Any) -> Any:
    return await noop(context, payload)


@registry.task("noop.isolated", isolation="process")
def noop_isolated(_context: TaskContext, payload: Any) -> Any:
    return payload["n"]


async def work_as_used(url: str, stop: asyncio.Event) -> None:
    """A program's worker with everything as it comes."""
    async with Headrace(as_app(url).url, registry) as headrace:
        await headrace.run_worker(stop=stop)


async def work(url: str, stop: asyncio.Event, *, concurrency: int = 100) -> None:
    async with await Database.connect(as_app(url)) as db:
        await Worker(db, registry, followers(), WorkerConfig(concurrency=concurrency)).run(stop)


async def fill(url: str, count: int, task_type: str = "noop", *, rows: int = 5000) -> float:
    """Submit in bulk, so many ``rows`` a call; gives the seconds it took."""
    async with Headrace(as_app(url).url, registry) as headrace:
        started = time.perf_counter()
        for first in range(0, count, rows):
            specs = [TaskSpec(task_type, {"n": n}) for n in range(first, min(first + rows, count))]
            await headrace.submit_many(specs)
        return time.perf_counter() - started


async def submit_singly(url: str, count: int, task_type: str = "noop") -> float:
    async with Headrace(as_app(url).url, registry) as headrace:
        for n in range(10):
            await headrace.submit(task_type, {"n": n})
        started = time.perf_counter()
        for n in range(count):
            await headrace.submit(task_type, {"n": n})
        return time.perf_counter() - started

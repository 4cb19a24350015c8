"""Headrace's scheduler and workers, each as a process of its own would run them."""

import asyncio
import time
from datetime import datetime
from typing import Any

from benchmarks.ours import as_app
from headrace import ids
from headrace.assembly.followers import followers as assembled
from headrace.database import Database
from headrace.schedules.due import MisfireConfig
from headrace.schedules.firing import fire_due
from headrace.schedules.loop import Scheduler, SchedulerConfig
from headrace.tasks.catalog import StoredCatalog, declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.registry import Registry
from headrace.tasks.submit import Submitter
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker

registry = Registry()

# Long enough that all of a batch are running at the same time.
_RUNS_FOR_S = 1.5


@registry.task("tick", events=False)
async def tick(_context: TaskContext, _payload: Any) -> int:
    began = time.time_ns()
    await asyncio.sleep(_RUNS_FOR_S)
    return began


def followers() -> Any:
    """As the product wires them: the events of tasks, and the runs of schedules."""
    return assembled()


def submitter() -> Submitter:
    return Submitter(StoredCatalog(), followers())


async def schedule(url: str, stop: asyncio.Event) -> None:
    async with await Database.connect(as_app(url)) as db:
        await Scheduler(db, submitter(), SchedulerConfig()).run(stop)


async def work(url: str, stop: asyncio.Event) -> None:
    async with await Database.connect(as_app(url)) as db:
        await Worker(db, registry, followers(), WorkerConfig(concurrency=1000)).run(stop)


async def declare(db: Database) -> None:
    async with db.transaction() as tx:
        await declare_types(tx, registry)


# Made in one statement, as nobody measures the making.
FILL = """
INSERT INTO headrace.scheduled_tasks
  (uid, user_id, name, type, is_recurring, cron_expr, next_run, max_concurrent, labels, data)
SELECT 'sch_' || lpad(n::text, 26, '0'), $1, 'bench ' || n, 'tick', true, $5,
       $4::timestamptz + CASE WHEN n <= $3 THEN '0' ELSE interval '1 hour' + n % 3600 * interval '1 second' END,
       $6, '{}', '{}'
FROM generate_series(1, $2::integer) AS n
"""


async def fill(
    db: Database, schedules: int, *, due: int, at: datetime, cron: str = "* * * * *", max_concurrent: int = 1
) -> None:
    """So many schedules, of which the first ones are due at this moment and the others later."""
    async with db.transaction() as tx:
        await tx.execute(FILL, ids.SYSTEM_USER, schedules, due, at, cron, max_concurrent)
        await tx.execute("SELECT pg_notify('headrace_schedules', '')")


async def fire_at(db: Database, submitting: Submitter, at: datetime, *, limit: int) -> int:
    """Fire what is due at a given time, in batches as the scheduler does; gives how many runs came of it."""
    fired = 0
    while True:
        async with db.transaction() as tx:
            batch = await fire_due(tx, submitting, MisfireConfig(), now=at, limit=limit)
        fired += batch.executions
        if batch.schedules < limit:
            return fired

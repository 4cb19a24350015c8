"""The task types that run under chaos: ``headrace worker tests.chaos.program:registry``.

What a handler did outside the database stands in the journal, a file that all processes append to, one line a write: it
survives every kill, and the invariants compare it with the tables.
"""

import asyncio
import os
import random
import time
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, Field

from headrace.database import Database, DatabaseConfig
from headrace.tasks.context import BlockingTaskContext, TaskContext
from headrace.tasks.errors import Snooze
from headrace.tasks.execution import Backoff
from headrace.tasks.registry import Registry
from tests.races.engine_program import ADD_APART, ADD_FINISHING, STARTED

registry = Registry()
SOON = Backoff(first=timedelta(milliseconds=50), cap=timedelta(milliseconds=500))
MANY = 1000
JOURNAL = "CHAOS_JOURNAL"
ADDRESS = "CHAOS_DATABASE_URL"


def note(context: TaskContext | BlockingTaskContext, word: str) -> None:
    line = f"{word} {context.task_id} {context.attempt}\n".encode()
    file = os.open(os.environ[JOURNAL], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, line)
    os.close(file)


_opened: list[Database] = []


async def database() -> Database:
    """A pool of the program's own, opened by the first handler that needs it and finds the server there."""
    if not _opened:
        _opened.append(await Database.connect(DatabaseConfig(os.environ[ADDRESS], role="chaos", pool_max=5)))
    return _opened[0]


@registry.task("quick", max_attempts=MANY, backoff=SOON)
async def quick(context: TaskContext, payload: Any) -> Any:
    return payload


@registry.task("steps", max_attempts=MANY, backoff=SOON, max_running=6)
async def steps(context: TaskContext, payload: Any) -> str:
    for number, name in enumerate(("fetch", "build")):
        async with context.step(name):
            await asyncio.sleep(random.uniform(0, 0.4))
            await context.progress(50 * (number + 1))
            await context.log(f"{name} is done")
    return "built"


@registry.task("flaky", max_attempts=MANY, backoff=SOON)
async def flaky(context: TaskContext, payload: Any) -> None:
    await asyncio.sleep(random.uniform(0, 0.2))
    match random.randrange(4):
        case 0:
            raise RuntimeError("not this time")
        case 1:
            raise Snooze(timedelta(milliseconds=100))


@registry.task("slow", max_attempts=2, backoff=SOON)
async def slow(context: TaskContext, payload: Any) -> None:
    """Long enough to be canceled, and fails for good at times."""
    await asyncio.sleep(random.uniform(0.5, 4))
    if random.random() < 0.5:
        raise RuntimeError("it was no use")


@registry.task("once", max_attempts=1)
async def once(context: TaskContext, payload: Any) -> None:
    """May run a single time, whatever happens."""
    note(context, "once")
    await asyncio.sleep(random.uniform(0, 0.5))


@registry.task("isolated", isolation="process", max_attempts=MANY, backoff=SOON, max_running=3)
def isolated(context: BlockingTaskContext, payload: Any) -> str:
    time.sleep(random.uniform(0, 0.5))
    context.log("from the child")
    return "apart"


@registry.task("count", max_attempts=MANY, backoff=SOON, events=False)
async def count(context: TaskContext, payload: Any) -> None:
    """Adds 1 in a transaction of its own, and 1 in the one that finishes it: the second happens exactly once."""
    db = await database()
    async with db.transaction() as tx:
        await tx.execute(STARTED, context.task_id, context.attempt)
        await tx.execute(ADD_APART, context.task_id)
    await asyncio.sleep(random.uniform(0, 0.3))
    async with db.transaction() as tx:
        await tx.execute(ADD_FINISHING, context.task_id)
        await context.finish_in(tx)


class Metered(BaseModel):
    units: int = Field(ge=1)
    used: int = Field(ge=0)
    seconds: float = 0.0


@registry.task("metered", submit="users", units="payload.units", max_attempts=5, backoff=SOON)
async def metered(context: TaskContext, payload: Metered) -> int:
    """Holds units, and says how many of them it has used; fails at times, and then costs nothing."""
    async with (await database()).transaction() as tx:
        await tx.execute(STARTED, context.task_id, context.attempt)
    await asyncio.sleep(payload.seconds)
    if random.random() < 0.2:
        raise RuntimeError("it was no use")
    await context.used(payload.used)
    return payload.used


@registry.task("ordered", max_attempts=MANY, backoff=SOON)
async def ordered(context: TaskContext, payload: Any) -> None:
    """Submitted in SQL, in one transaction with a row of the program's own."""


@registry.task("tick", max_attempts=3, backoff=SOON)
async def tick(context: TaskContext, payload: Any) -> None:
    await asyncio.sleep(random.uniform(0, 0.5))
    if random.random() < 0.1:
        raise RuntimeError("a bad day")

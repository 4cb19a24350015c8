"""A worker in a process of its own, to be killed: ``python -m tests.races.engine_program '{"url": …, "types": …}'``.

Its handlers keep books of what they did, in tables of the test's own (``engine_stand.BOOKS``) or in a journal file.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.database import Database, DatabaseConfig
from headrace.errors import HeadraceError
from headrace.tasks.context import TaskContext
from headrace.tasks.execution import Backoff
from headrace.tasks.followers import Followers
from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker

SOON = Backoff(first=timedelta(milliseconds=20), cap=timedelta(milliseconds=200))
KEY_LIMIT = 3


@dataclass(frozen=True)
class Options:
    url: str
    types: str  # a name from REGISTRIES
    lease: float = 2.0
    concurrency: int = 4
    listen: bool = True
    pooled: bool = False
    work: float = 0.1  # how long a handler works, at most
    journal: str = ""
    marks: str = ""  # a folder where each process leaves its id once a handler has run
    scratch: str = f"/tmp/headrace-races-{os.getuid()}"  # others test on this machine, too
    queues: list[str] | None = None
    program: str = "tests.races.engine_program"
    settings: dict[str, Any] = field(default_factory=dict)


# The attempt stands in the books only while the queue says that it is the one: a late worker's start does not count.
STARTED = """
INSERT INTO books.attempts (task_id, attempt, worker, claimed_at, at)
SELECT task_id, attempt, worker, claimed_at, clock_timestamp()
FROM headrace.task_queue WHERE task_id = $1 AND attempt = $2
"""
ADD_APART = "UPDATE books.counters SET apart = apart + 1 WHERE task_id = $1"
ADD_FINISHING = "UPDATE books.counters SET finishing = finishing + 1 WHERE task_id = $1"


def leave_a_mark(options: Options) -> None:
    if not options.marks:
        return
    (Path(options.marks) / str(os.getpid())).touch()


def counting(registry: Registry, db: Database, options: Options) -> None:
    """Tasks that add 1 in a transaction of their own, work for a while, and add 1 in the finishing transaction."""

    @registry.task("count", max_attempts=1000, backoff=SOON, events=False)
    async def count(context: TaskContext, payload: Any) -> None:
        async with db.transaction() as tx:
            await tx.execute(STARTED, context.task_id, context.attempt)
            await tx.execute(ADD_APART, context.task_id)
        leave_a_mark(options)
        await asyncio.sleep(random.uniform(0, options.work))
        async with db.transaction() as tx:
            await tx.execute(ADD_FINISHING, context.task_id)
            await context.finish_in(tx)


def limited(registry: Registry, db: Database, options: Options) -> None:
    """Tasks of which no more than KEY_LIMIT may run at once for a key; the journal says when each began and ended."""
    journal = Path(options.journal).open("a", buffering=1)  # noqa: SIM115 - open until the process is killed

    def note(word: str, context: TaskContext, key: str) -> None:
        # One clock for all processes of a machine; one write for each line, so that a kill tears none.
        line = {"word": word, "at": time.monotonic(), "task": context.task_id, "attempt": context.attempt, "key": key}
        journal.write(json.dumps(line) + "\n")

    @registry.task(
        "limited",
        max_attempts=1000,
        backoff=SOON,
        events=False,
        max_running_per_key=KEY_LIMIT,
        limit_key="payload.key",
    )
    async def work(context: TaskContext, payload: Any) -> None:
        leave_a_mark(options)
        note("began", context, payload["key"])
        try:
            await asyncio.sleep(random.uniform(0.2, 1) * options.work)
        finally:
            note("ended", context, payload["key"])


def noops(registry: Registry, db: Database, options: Options) -> None:
    """Tasks that only add a byte to the journal: its length is how many handlers have run."""
    journal = os.open(options.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    @registry.task("noop", max_attempts=1000, backoff=SOON, events=False)
    async def noop(context: TaskContext, payload: Any) -> None:
        os.write(journal, b".")


def old_code(registry: Registry, db: Database, options: Options) -> None:
    @registry.task("a", events=False)
    async def a(context: TaskContext, payload: Any) -> str:
        leave_a_mark(options)
        await asyncio.sleep(random.uniform(0, options.work))
        return "a by the old code"


def new_code(registry: Registry, db: Database, options: Options) -> None:
    @registry.task("a", events=False)
    async def a(context: TaskContext, payload: Any) -> str:
        await asyncio.sleep(random.uniform(0, options.work))
        return "a by the new code"

    @registry.task("b", events=False)
    async def b(context: TaskContext, payload: Any) -> str:
        await asyncio.sleep(random.uniform(0, options.work))
        return "b"


REGISTRIES: dict[str, Callable[[Registry, Database, Options], None]] = {
    "counting": counting,
    "limited": limited,
    "noops": noops,
    "old": old_code,
    "new": new_code,
}


async def main(options: Options) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    database = DatabaseConfig(options.url, role="worker", pool_max=20, pooled=options.pooled)
    async with await reach(database) as db:
        registry = Registry()
        REGISTRIES[options.types](registry, db, options)
        config = WorkerConfig(
            queues=options.queues,
            concurrency=options.concurrency,
            lease=timedelta(seconds=options.lease),
            poll_every=timedelta(milliseconds=200),
            listen=options.listen,
            scratch=Path(options.scratch),
            shutdown_timeout=timedelta(seconds=5),
            **options.settings,
        )
        while not stop.is_set():
            try:
                await Worker(db, registry, Followers(), config).run(stop)
            except HeadraceError:  # the database is away at this moment: it has not become a worker yet
                await asyncio.sleep(0.1)


async def reach(config: DatabaseConfig) -> Database:
    while True:
        try:
            return await Database.connect(config)
        except HeadraceError:
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(main(Options(**json.loads(sys.argv[1]))))

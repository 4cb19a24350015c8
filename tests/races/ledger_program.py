"""Processes of a metered site, to be killed: ``python -m tests.races.ledger_program '{"url": …, "types": "worker"}'``.

A ``worker`` runs metered tasks: some fail for good, some try again, some use a part of what is held. A ``client``
creates, cancels and tries again, alone and in batches, through the verbs of the API and in SQL, until it is killed.
"""

import asyncio
import json
import random
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg

from headrace.access import Caller, Role
from headrace.assembly.followers import followers
from headrace.audit import SYSTEM, ActorType, Who
from headrace.database import Database, DatabaseConfig
from headrace.errors import HeadraceError
from headrace.tasks import service
from headrace.tasks.catalog import RegistryCatalog, declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Fatal
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker
from tests.open_types import OpenRegistry
from tests.races.engine_program import SOON, Options, leave_a_mark, reach

SOME = "SELECT id, user_id FROM headrace.tasks TABLESAMPLE SYSTEM (50) WHERE status = ANY ($1) LIMIT 5"


def registry_of(options: Options) -> Registry:
    registry = OpenRegistry()

    @registry.task("render", units="payload.units", max_attempts=20, backoff=SOON, events=False)
    async def render(context: TaskContext, payload: dict[str, Any]) -> None:
        leave_a_mark(options)
        await asyncio.sleep(random.uniform(0, options.work))
        if payload["units"] > 1 and payload["end"] != "whole":
            await context.used(payload["units"] - 1)
        if payload["end"] == "fail":
            raise Fatal("half of it is done")
        if payload["end"] == "retry" and context.attempt < 3:
            raise RuntimeError("not yet")

    return registry


def some_spec() -> TaskSpec:
    ends = ("whole", "part", "fail", "retry")
    return TaskSpec("render", {"units": random.randint(1, 4), "end": random.choice(ends)})


async def work(db: Database, options: Options, stop: asyncio.Event) -> None:
    config = WorkerConfig(
        concurrency=options.concurrency,
        lease=timedelta(seconds=options.lease),
        poll_every=timedelta(milliseconds=200),
        scratch=Path(options.scratch),
        shutdown_timeout=timedelta(seconds=5),
    )
    while not stop.is_set():
        try:
            await Worker(db, registry_of(options), followers(), config).run(stop)
        except HeadraceError:  # the database is away at this moment
            await asyncio.sleep(0.1)


async def declare(db: Database, registry: Registry) -> None:
    while True:
        try:
            async with db.transaction() as tx:
                return await declare_types(tx, registry)
        except HeadraceError:  # the database is away at this moment
            await asyncio.sleep(0.1)


async def be_clients(db: Database, options: Options, stop: asyncio.Event) -> None:
    registry = registry_of(options)
    catalog, everybody = RegistryCatalog(registry), followers()
    tasks = Tasks(Submitter(catalog, everybody), catalog, everybody)
    await declare(db, registry)
    users: list[str] = options.settings["users"]

    async def act() -> None:
        caller = Caller(Who(SYSTEM, ActorType.SYSTEM), random.choice(users), Role.ADMIN)
        match random.choices(("one", "batch", "sql", "cancel", "retry"), (3, 2, 3, 3, 2))[0]:
            case "one":
                async with db.transaction() as tx:
                    await service.submit_task(tx, tasks, caller, some_spec())
            case "batch":
                async with db.transaction() as tx:
                    await service.submit_tasks(tx, tasks, caller, [some_spec() for _ in range(5)])
            case "sql":
                spec = some_spec()
                await db.fetch_alone("SELECT headrace.submit($1, $2, $3)", spec.type, spec.payload, caller.user_id)
            case verb:
                change = service.cancel_task if verb == "cancel" else service.retry_task
                states = ["QUEUED", "RUNNING"] if verb == "cancel" else ["FAILED", "CANCELED"]
                for row in await db.fetch_alone(SOME, states):
                    async with db.transaction() as tx:
                        await change(tx, tasks, caller, row["id"])

    async def client() -> None:
        while not stop.is_set():
            try:
                await act()
            except (HeadraceError, asyncpg.PostgresError):  # no units, over already, the database is away
                await asyncio.sleep(0.02)
            leave_a_mark(options)
            await asyncio.sleep(random.uniform(0, 0.02))

    await asyncio.gather(*(client() for _ in range(4)))


async def main(options: Options) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with await reach(DatabaseConfig(options.url, role=options.types, pool_max=10)) as db:
        await (work if options.types == "worker" else be_clients)(db, options, stop)


if __name__ == "__main__":
    asyncio.run(main(Options(**json.loads(sys.argv[1]))))

"""A scheduler or a worker for schedules in a process of its own, to be killed; ``types`` says which."""

import asyncio
import json
import random
import signal
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from headrace.assembly.followers import followers
from headrace.database import Database, DatabaseConfig
from headrace.errors import HeadraceError
from headrace.schedules.firing import Fired
from headrace.schedules.loop import Scheduler, SchedulerConfig
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.context import TaskContext
from headrace.tasks.reaping import Reaper
from headrace.tasks.registry import Registry
from headrace.tasks.submit import Submitter
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker
from tests.races.engine_program import SOON, Options, leave_a_mark, reach

FOLLOWERS = followers()


class Marking(Scheduler):
    """Leaves a mark once it has fired: one that is killed before that proves nothing."""

    options: Options

    async def run_once(self, *, now: datetime | None = None) -> Fired:
        return self._marked(await super().run_once(now=now))

    async def fire_on_time(self, due: datetime) -> Fired:
        return self._marked(await super().fire_on_time(due))

    def _marked(self, fired: Fired) -> Fired:
        if fired.executions:
            leave_a_mark(self.options)
        return fired


async def fire(db: Database, options: Options, stop: asyncio.Event) -> None:
    config = SchedulerConfig(poll_every=timedelta(milliseconds=200))
    scheduler = Marking(db, Submitter(StoredCatalog(), FOLLOWERS), config)
    scheduler.options = options
    reaping = asyncio.create_task(Reaper(db, Registry(), FOLLOWERS).run(timedelta(seconds=options.lease / 3)))
    await scheduler.run(stop)
    reaping.cancel()


async def work(db: Database, options: Options, stop: asyncio.Event) -> None:
    registry = Registry()

    @registry.task("tick", backoff=SOON, events=False)
    async def tick(_: TaskContext, __: Any) -> None:
        leave_a_mark(options)
        await asyncio.sleep(random.uniform(0, options.work))

    config = WorkerConfig(
        concurrency=options.concurrency,
        lease=timedelta(seconds=options.lease),
        poll_every=timedelta(milliseconds=200),
        scratch=Path(options.scratch),
        shutdown_timeout=timedelta(seconds=5),
    )
    while not stop.is_set():
        try:
            await Worker(db, registry, FOLLOWERS, config).run(stop)
        except HeadraceError:  # the database is away at this moment: it has not become a worker yet
            await asyncio.sleep(0.1)


async def main(options: Options) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    config = DatabaseConfig(
        options.url, role=options.types, idle_in_transaction_timeout=timedelta(seconds=options.lease)
    )
    async with await reach(config) as db:
        await (fire if options.types == "scheduler" else work)(db, options, stop)


if __name__ == "__main__":
    asyncio.run(main(Options(**json.loads(sys.argv[1]))))
